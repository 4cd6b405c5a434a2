// A timer of the kernel's, which counts processor time, interrupts whoever runs, a hundred times, and its handler posts a semaphore that a thread waits for. Exits 0.
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/time.h>

static sem_t ticks;
static volatile int seen;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

static void on_tick(int number) {
    int saved = errno;
    sem_post(&ticks);
    errno = saved;
    (void)number;
}

static void *counts(void *unused) {
    while (seen < 100) {
        while (sem_wait(&ticks)) CHECK(errno == EINTR);
        seen++;
    }
    return unused;
}

static void *works(void *unused) {
    while (seen < 100) {
        pthread_mutex_lock(&guard);
        sched_yield();
        pthread_mutex_unlock(&guard);
    }
    return unused;
}

int main(void) {
    sem_init(&ticks, 0, 0);
    struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    sigaction(SIGPROF, &action, 0);
    struct itimerval often = {{0, 500}, {0, 500}};
    setitimer(ITIMER_PROF, &often, 0);
    pthread_t threads[3];
    pthread_create(&threads[0], 0, counts, 0);
    pthread_create(&threads[1], 0, works, 0);
    pthread_create(&threads[2], 0, works, 0);
    for (int i = 0; i < 3; i++) CHECK(pthread_join(threads[i], 0) == 0);
    return 0;
}
