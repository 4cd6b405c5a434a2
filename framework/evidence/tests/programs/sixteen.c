/* Sixteen threads, half of them blocked or busy inside libc, half in code of their own. */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define NEVER_INLINED __attribute__((noinline, noclone))

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static sem_t empty;
static int pipe_ends[2];
static int epoll_end;
static volatile unsigned long counter;

NEVER_INLINED static void in_mutex(void) { pthread_mutex_lock(&held); counter++; }
NEVER_INLINED static void in_cond(void) { pthread_mutex_lock(&guard); for (;;) pthread_cond_wait(&never, &guard); }
NEVER_INLINED static void in_sem(void) { for (;;) { sem_wait(&empty); counter++; } }
NEVER_INLINED static void in_read(void) { char byte; while (read(pipe_ends[0], &byte, 1) != 1) counter++; }
NEVER_INLINED static void in_sleep(void) { struct timespec hour = {3600, 0}; for (;;) { nanosleep(&hour, 0); counter++; } }
NEVER_INLINED static void in_epoll(void) { struct epoll_event event; for (;;) { epoll_wait(epoll_end, &event, 1, -1); counter++; } }
NEVER_INLINED static void in_poll(void) { struct pollfd entry = {pipe_ends[0], POLLIN, 0}; for (;;) { poll(&entry, 1, -1); counter++; } }
NEVER_INLINED static void in_malloc(void) { for (;;) { void *p = malloc(counter % 5000 + 1); *(volatile char *)p = 1; free(p); counter++; } }

#define SPINNER(n) \
    NEVER_INLINED static void innermost_##n(void) { for (;;) counter += n + 1; } \
    NEVER_INLINED static void spin_##n(void) { innermost_##n(); counter++; }
SPINNER(0) SPINNER(1) SPINNER(2) SPINNER(3) SPINNER(4) SPINNER(5) SPINNER(6) SPINNER(7)

static void (*const bodies[16])(void) = {
    in_mutex, in_cond, in_sem, in_read, in_sleep, in_epoll, in_poll, in_malloc,
    spin_0, spin_1, spin_2, spin_3, spin_4, spin_5, spin_6, spin_7,
};

static void *thread_main(void *argument) {
    long index = (long)argument;
    bodies[index]();
    counter++;
    return 0;
}

int main(void) {
    sem_init(&empty, 0, 0);
    if (pipe(pipe_ends)) return 1;
    epoll_end = epoll_create1(0);
    pthread_mutex_lock(&held);
    for (long i = 0; i < 16; i++) {
        pthread_t thread;
        char name[16];
        pthread_create(&thread, 0, thread_main, (void *)i);
        snprintf(name, sizeof name, "worker-%ld", i);
        pthread_setname_np(thread, name);
    }
    puts("ready");
    fflush(stdout);
    for (;;) pause();
}
