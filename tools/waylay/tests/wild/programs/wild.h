// What every program here includes.
#pragma once
#define _GNU_SOURCE
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

// Starts `count` threads and waits for them.
static inline void run(int count, void *(*routine)(void *)) {
    pthread_t threads[64];
    for (long i = 0; i < count; i++) pthread_create(&threads[i], 0, routine, (void *)i);
    for (int i = 0; i < count; i++) pthread_join(threads[i], 0);
}

static inline void run_two(void *(*first)(void *), void *(*second)(void *)) {
    pthread_t a, b;
    pthread_create(&a, 0, first, 0);
    pthread_create(&b, 0, second, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
}
