/* Fails in the way named by its argument. The handler tells who and where, and waits to be looked at. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#define NEVER_INLINED __attribute__((noinline, noclone))

static volatile int sink;
static volatile int *volatile bad_pointer = (int *)8;
static void (*volatile bad_call)(void);

static void handler(int signal, siginfo_t *info, void *context) {
    char line[128];
    int length = snprintf(line, sizeof line, "%d %d %lx %lx %lx\n", gettid(), signal, (unsigned long)info->si_addr,
                          (unsigned long)info, (unsigned long)context);
    if (write(1, line, length) != length) _exit(1);
    for (;;) pause();
}

NEVER_INLINED static void write_badly(void) { *bad_pointer = 1; sink++; }
NEVER_INLINED static void call_nothing(void) { bad_call(); sink++; }
NEVER_INLINED static int recurse(int depth) {
    volatile char room[200];
    room[depth % 200] = (char)depth;
    return recurse(depth + 1) + room[3];
}
NEVER_INLINED static void give_up(void) { abort(); }

static const char *kind;

NEVER_INLINED static void fail_now(void) {
    if (!strcmp(kind, "segv")) write_badly();
    if (!strcmp(kind, "call")) call_nothing();
    if (!strcmp(kind, "overflow")) sink = recurse(0);
    if (!strcmp(kind, "abort")) give_up();
    sink++;
}

static void *thread_main(void *unused) {
    stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
    sigaltstack(&stack, 0);
    fail_now();
    sink++;
    return unused;
}

static void *idle(void *unused) { for (;;) pause(); return unused; }

int main(int count, char **arguments) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    int signals[] = {SIGSEGV, SIGABRT, SIGBUS};
    pthread_t thread;
    for (int i = 0; i < 3; i++) sigaction(signals[i], &action, 0);
    kind = count > 1 ? arguments[1] : "segv";
    for (int i = 0; i < 3; i++) pthread_create(&thread, 0, idle, 0);
    puts("ready");
    fflush(stdout);
    pthread_create(&thread, 0, thread_main, 0);
    pthread_join(thread, 0);
}
