/* Counts queued signals and, once told to, prints how many came. Uses processor time in between. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile sig_atomic_t received;
static volatile unsigned long counter;

static void handler(int signal) { (void)signal; received++; }
static void *spin(void *unused) { for (;;) counter++; return unused; }

int main(void) {
    pthread_t thread;
    sigset_t set;
    char byte;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN + 3);
    /* Only the first thread takes the signals, so that counting needs no atomics. */
    pthread_sigmask(SIG_BLOCK, &set, 0);
    pthread_create(&thread, 0, spin, 0);
    pthread_sigmask(SIG_UNBLOCK, &set, 0);
    sigaction(SIGRTMIN + 3, &(struct sigaction){.sa_handler = handler}, 0);
    puts("ready");
    fflush(stdout);
    while (read(0, &byte, 1) != 0) {}
    printf("%d\n", (int)received);
    fflush(stdout);
    for (;;) pause();
}
