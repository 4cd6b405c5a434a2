// What makes a thread itself survives switches: thread-local variables, errno, keys, stack bounds, floating-point mode.
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>

static __thread int initialised = 42;
static __thread char large[4096];
static pthread_key_t key;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static int destroyed, shared;

static void destroy(void *value) {
    pthread_mutex_lock(&guard);
    destroyed++;
    pthread_mutex_unlock(&guard);
    free(value);
}

static void *lives(void *argument) {
    long number = (long)argument;
    pthread_t self = pthread_self();
    CHECK(initialised == 42 && large[100] == 0);
    initialised = 100 + number;
    memset(large, (int)number + 1, sizeof large);
    void *value = malloc(32);
    pthread_setspecific(key, value);
    pid_t tid = gettid();
    CHECK(tid == syscall(SYS_gettid));
    fesetround(number % 2 ? FE_UPWARD : FE_TONEAREST);

    pthread_attr_t attributes;
    void *low;
    size_t size;
    char local;
    CHECK(pthread_getattr_np(self, &attributes) == 0);
    pthread_attr_getstack(&attributes, &low, &size);
    CHECK(&local > (char *)low && &local < (char *)low + size);
    pthread_attr_destroy(&attributes);

    char *blocks[20] = {0};
    for (int round = 0; round < 20; round++) {
        errno = 1000 + (int)number;
        for (int i = 0; i < 20; i++) {
            free(blocks[i]);
            blocks[i] = malloc(16 + (round * i * 7 + number) % 3000);
            memset(blocks[i], (int)number, 16);
        }
        pthread_mutex_lock(&guard);
        shared++;
        sched_yield();
        pthread_mutex_unlock(&guard);
        CHECK(errno == 1000 + number);
        CHECK(initialised == 100 + number && large[4095] == number + 1);
        CHECK(pthread_equal(self, pthread_self()) && pthread_getspecific(key) == value && gettid() == tid);
        CHECK(fegetround() == (number % 2 ? FE_UPWARD : FE_TONEAREST));
        for (int i = 0; i < 20; i++) CHECK(*blocks[i] == (char)number);
    }
    for (int i = 0; i < 20; i++) free(blocks[i]);
    printf("thread %ld\n", number);
    if (number == 2) pthread_exit((void *)20);
    return (void *)(number * 10);
}

int main(void) {
    pthread_key_create(&key, destroy);
    pthread_t threads[4];
    for (long i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], 0, lives, (void *)i) == 0);
    for (long i = 0; i < 4; i++) {
        void *result;
        CHECK(pthread_join(threads[i], &result) == 0 && result == (void *)(i * 10));
    }
    CHECK(shared == 80 && destroyed == 4);
    return 0;
}
