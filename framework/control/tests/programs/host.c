// A host that repeats small tests in one process: host KIND RUNS. Prints what the runs did. Exits 0.
#define _GNU_SOURCE
#include "check.h"
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>

struct summary {
    uint64_t steps, switches, stretches;
    uint32_t threads, partly_controlled;
};
static uint32_t (*begin_run)(uint64_t);
static void (*end_run)(uint32_t, struct summary *);

static pthread_mutex_t guard, filler;
static int initialised, bug, counter;

static void fill(void) {
    for (int i = 0; i < 5; i++) {
        pthread_mutex_lock(&filler);
        counter++;
        pthread_mutex_unlock(&filler);
    }
}

static void *writer(void *unused) {
    fill();
    pthread_mutex_lock(&guard);
    initialised = 1;
    pthread_mutex_unlock(&guard);
    fill();
    return unused;
}

static void *reader(void *unused) {
    fill();
    pthread_mutex_lock(&guard);
    if (!initialised) bug = 1;
    pthread_mutex_unlock(&guard);
    fill();
    return unused;
}

static void order(void) {
    pthread_t a, b;
    void *result;
    CHECK(pthread_create(&a, 0, writer, &a) == 0);
    CHECK(pthread_create(&b, 0, reader, &b) == 0);
    CHECK(pthread_join(a, &result) == 0 && result == &a);
    CHECK(pthread_join(b, &result) == 0 && result == &b);
}

// Every thread of every run is a new one, whatever the one before left behind.
static __thread int start_value = 42;
static __thread int zero;
static pthread_key_t key, plain_key;
static int destroyed;

static void destroy(void *value) {
    CHECK(value == &start_value);
    pthread_mutex_lock(&guard);
    destroyed++;
    pthread_mutex_unlock(&guard);
}

static void *is_new(void *number) {
    CHECK(start_value == 42 && zero == 0);
    CHECK(pthread_getspecific(key) == 0 && pthread_getspecific(plain_key) == 0);
    start_value = zero = 7;
    pthread_setspecific(key, &start_value);
    pthread_setspecific(plain_key, &zero);
    sched_yield();
    CHECK(start_value == 7);
    if (number == (void *)2) pthread_exit(0);
    return number;
}

static void freshness(void) {
    pthread_t threads[3];
    destroyed = 0;
    for (long i = 0; i < 3; i++) CHECK(pthread_create(&threads[i], 0, is_new, (void *)i) == 0);
    for (int i = 0; i < 3; i++) CHECK(pthread_join(threads[i], 0) == 0);
    CHECK(destroyed == 3);
}

// Threads that nobody joins end before the run does.
static void *counts(void *unused) {
    for (int i = 0; i < 3; i++) sched_yield();
    counter++;
    return unused;
}

static void detached(void) {
    pthread_t thread;
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_create(&thread, 0, counts, 0) == 0);
        CHECK(pthread_detach(thread) == 0);
    }
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    int runs = atoi(argv[2]);
    begin_run = dlsym(RTLD_DEFAULT, "waylay_control_begin_run");
    end_run = dlsym(RTLD_DEFAULT, "waylay_control_end_run");
    CHECK(begin_run && end_run);
    pthread_key_create(&key, destroy);
    pthread_key_create(&plain_key, 0);
    void (*test)(void) = !strcmp(argv[1], "order") ? order : !strcmp(argv[1], "fresh") ? freshness : detached;
    int bugs = 0, first = -1;
    uint64_t steps = 0, switches = 0;
    for (int run = 0; run < runs; run++) {
        pthread_mutex_init(&guard, 0);
        pthread_mutex_init(&filler, 0);
        initialised = bug = counter = 0;
        CHECK(begin_run(run) == 0);
        test();
        struct summary summary;
        end_run(bug, &summary);
        CHECK(summary.threads == (test == freshness ? 4 : 3));
        if (test == detached) CHECK(counter == 2);
        if (bug && first < 0) first = run;
        bugs += bug;
        steps += summary.steps;
        switches += summary.switches;
    }
    printf("runs=%d bugs=%d first=%d steps=%lu switches=%lu\n", runs, bugs, first, steps, switches);
    return 0;
}
