/* Threads that count what they do into a shared file, one number each: threads FILE KIND:NAME...
   Commands on standard input: exec, segv, quit. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long *counters;
static char **arguments;

static void sleep_ns(long nanoseconds) {
    struct timespec time = {nanoseconds / 1000000000, nanoseconds % 1000000000};
    nanosleep(&time, 0);
}

static void *short_life(void *counter) { ++*(volatile unsigned long *)counter; return 0; }

static void *thread_main(void *argument) {
    long index = (long)argument;
    volatile unsigned long *counter = &counters[index];
    char kind[16] = {0}, *colon = strchr(arguments[index], ':');
    memcpy(kind, arguments[index], colon - arguments[index]);
    prctl(PR_SET_NAME, colon + 1);
    ++*counter;
    if (!strcmp(kind, "spin")) for (;;) ++*counter;
    if (!strcmp(kind, "nap")) for (;;) { sleep_ns(100000); ++*counter; }
    if (!strcmp(kind, "block")) for (;;) pause();
    if (!strcmp(kind, "churn")) for (;;) {
        pthread_t thread;
        if (!pthread_create(&thread, 0, short_life, (void *)counter)) pthread_join(thread, 0);
    }
    if (!strcmp(kind, "vfork")) {
        /* Until the child ends, this thread cannot be stopped by anything. */
        if (!vfork()) { struct timespec time = {30, 0}; nanosleep(&time, 0); _exit(0); }
        for (;;) pause();
    }
    abort();
}

static void handler(int signal, siginfo_t *info, void *context) {
    char line[128];
    int length = snprintf(line, sizeof line, "crash %d %lx %lx\n", gettid(), (unsigned long)info, (unsigned long)context);
    if (write(1, line, length) != length) _exit(signal);
    for (;;) pause();
}

static void *crash(void *unused) { *(volatile int *)8 = 1; return unused; }

static void *become_another(void *unused) {
    prctl(PR_SET_NAME, "execs");
    execl("/proc/self/exe", "threads", (char *)0);
    return unused;
}

int main(int count, char **values) {
    if (count < 2) { puts("execd"); fflush(stdout); pause(); return 0; }
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, 0);
    int file = open(values[1], O_RDWR);
    counters = mmap(0, 1 << 14, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    arguments = values + 2;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    for (long i = 0; i < count - 2; i++) {
        pthread_t thread;
        if (pthread_create(&thread, &small, thread_main, (void *)i)) abort();
    }
    for (long i = 0; i < count - 2; i++) while (!counters[i]) sleep_ns(100000);
    puts("ready");
    fflush(stdout);
    char line[32];
    while (fgets(line, sizeof line, stdin)) {
        pthread_t thread;
        if (!strcmp(line, "quit\n")) break;
        if (!strcmp(line, "exec\n")) pthread_create(&thread, &small, become_another, 0);
        if (!strcmp(line, "segv\n")) pthread_create(&thread, &small, crash, 0);
        if (!strcmp(line, "hide\n")) { prctl(PR_SET_DUMPABLE, 0); puts("hidden"); fflush(stdout); }
    }
    return 0;
}
