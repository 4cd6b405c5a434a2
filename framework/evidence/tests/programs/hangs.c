/* Hangs in the way named by its argument, on two worker threads. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t locks[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_barrier_t both;
static volatile int flag;
static const char *kind;

static void crosswise(long index) {
    pthread_mutex_lock(&locks[index]);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&locks[1 - index]);
}
static void spin(void) { while (!flag) {} }
static void poll_flag(void) { struct timespec pause = {0, 1000000}; while (!flag) nanosleep(&pause, 0); }
static void sleep_long(void) { struct timespec hour = {3600, 0}; nanosleep(&hour, 0); }
static void read_input(void) { char byte; if (read(0, &byte, 1) < 0) flag = 0; }

static void *worker(void *argument) {
    if (!strcmp(kind, "deadlock")) crosswise((long)argument);
    if (!strcmp(kind, "livelock")) spin();
    if (!strcmp(kind, "polling")) poll_flag();
    if (!strcmp(kind, "slow")) sleep_long();
    if (!strcmp(kind, "input")) read_input();
    return 0;
}

int main(int count, char **arguments) {
    pthread_t threads[2];
    kind = count > 1 ? arguments[1] : "deadlock";
    pthread_barrier_init(&both, 0, 2);
    for (long i = 0; i < 2; i++) {
        pthread_create(&threads[i], 0, worker, (void *)i);
        pthread_setname_np(threads[i], "worker");
    }
    puts("ready");
    fflush(stdout);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
}
