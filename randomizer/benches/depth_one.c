/* A bug of depth one: depth_one THREADS ITERATIONS. In every iteration each thread takes STEPS steps; the first sets a
   flag at a random step, the second reads it GAP steps later. Only if the first is late does the second find
   it unset. Prints iterations, bugs and the shortest iteration in nanoseconds. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

enum { STEPS = 100, GAP = 20, STEP_NS = 50000 };

static pthread_barrier_t begin, end;
static volatile int place, flag, bug, over;

static void step(void) {
    struct timespec time = {0, STEP_NS};
    nanosleep(&time, 0);
}

static void *thread_main(void *argument) {
    long index = (long)argument;
    char name[16];
    snprintf(name, sizeof name, "w%ld", index);
    prctl(PR_SET_NAME, name);
    prctl(PR_SET_TIMERSLACK, 1);
    for (;;) {
        pthread_barrier_wait(&begin);
        if (over) return 0;
        for (int i = 0; i < STEPS; i++) {
            if (index == 0 && i == place) flag = 1;
            if (index == 1 && i == place + GAP && !flag) bug = 1;
            step();
        }
        pthread_barrier_wait(&end);
    }
}

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000 + time.tv_nsec;
}

int main(int count, char **arguments) {
    if (count != 3) return 2;
    int threads = atoi(arguments[1]), iterations = atoi(arguments[2]), bugs = 0;
    long shortest = 1L << 62;
    pthread_t ids[64];
    pthread_barrier_init(&begin, 0, threads + 1);
    pthread_barrier_init(&end, 0, threads + 1);
    for (long i = 0; i < threads; i++) pthread_create(&ids[i], 0, thread_main, (void *)i);
    srand(1);
    for (int i = 0; i < iterations; i++) {
        place = rand() % (STEPS - GAP);
        flag = bug = 0;
        long start = now();
        pthread_barrier_wait(&begin);
        pthread_barrier_wait(&end);
        long time = now() - start;
        if (time < shortest) shortest = time;
        bugs += bug;
    }
    over = 1;
    pthread_barrier_wait(&begin);
    for (int i = 0; i < threads; i++) pthread_join(ids[i], 0);
    printf("%d %d %ld\n", iterations, bugs, shortest);
    return 0;
}
