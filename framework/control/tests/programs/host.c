// A host that repeats small tests in one process: host KIND RUNS. Prints what the runs did. Exits 0.
#define _GNU_SOURCE
#include "check.h"
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

struct summary {
    uint64_t steps, switches, stretches;
    uint32_t threads, partly_controlled, left, reserved;
};
static uint32_t (*begin_run)(uint64_t);
static void (*end_run)(uint32_t, struct summary *);
static void (*stop_run)(void);

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

// Computes for a moment between two steps, at the same place in every run.
static void *computes(void *unused) {
    pthread_mutex_lock(&guard);
    for (volatile int i = 0; i < 100000; i++) {}
    pthread_mutex_unlock(&guard);
    return unused;
}

static void busy(void) {
    pthread_t a, b;
    CHECK(pthread_create(&a, 0, computes, 0) == 0 && pthread_create(&b, 0, computes, 0) == 0);
    CHECK(pthread_join(a, 0) == 0 && pthread_join(b, 0) == 0);
}

// What a run may leave behind: a thread of a pool that waits for work, one that waits in the kernel, one that never ends.
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static int pipe_ends[2];

static void *waits_for_work(void *unused) {
    pthread_mutex_lock(&guard);
    for (;;) pthread_cond_wait(&work, &guard);
    return unused;
}

static void *waits_in_the_kernel(void *unused) {
    char byte;
    CHECK(read(pipe_ends[0], &byte, 1) == 1);
    return unused;
}

static void *never_ends(void *unused) {
    for (;;) usleep(1000);
    return unused;
}

static void *takes_and_ends(void *unused) {
    pthread_mutex_lock(&guard);
    return unused;
}

static void leave(void *(*routine)(void *)) {
    pthread_t thread;
    CHECK(pthread_create(&thread, 0, routine, 0) == 0);
    CHECK(pthread_detach(thread) == 0);
}

static void pool(void) { leave(waits_for_work); }
static void reader_left(void) { leave(waits_in_the_kernel); }
static void ticker(void) { leave(never_ends); }
static void stuck(void) {
    leave(takes_and_ends);
    leave(takes_and_ends);
}

// One run, then another if the first left nothing behind.
static int leftovers(void (*test)(void)) {
    struct summary summary;
    CHECK(pipe(pipe_ends) == 0);
    pthread_mutex_init(&guard, 0);
    CHECK(begin_run(0) == 0);
    test();
    end_run(0, &summary);
    printf("left=%u threads=%u refused=%d\n", summary.left, summary.threads, begin_run(1) == 2);
    fflush(stdout);
    _exit(0);
}

// A run that stops in the middle: what was to happen next does not.
static void *stops(void *unused) {
    stop_run();
    // Everything goes to libc now: a wait that nobody would end in the schedule ends by its real timeout.
    int before = counter;
    usleep(20000);
    printf("still=%d refused=%d\n", before == counter, begin_run(1) == 2);
    fflush(stdout);
    _exit(0);
    return unused;
}

static int stopping(void) {
    pthread_t a, b;
    CHECK(begin_run(0) == 0);
    CHECK(pthread_create(&a, 0, stops, 0) == 0);
    CHECK(pthread_create(&b, 0, counts, 0) == 0);
    pthread_join(a, 0);
    return 1;
}

// A thread that ends last, not joined yet, finds out that nobody can run.
static void *ends(void *unused) {
    sched_yield();
    return unused;
}

static int last_one(void) {
    pthread_t a, b;
    pthread_mutex_init(&guard, 0);
    pthread_mutex_lock(&guard);
    CHECK(begin_run(0) == 0);
    CHECK(pthread_create(&a, 0, ends, 0) == 0);
    CHECK(pthread_create(&b, 0, takes_and_ends, 0) == 0);
    pthread_join(b, 0);
    return 1;
}

// Two locks in opposite orders, until it happens.
static pthread_mutex_t left_lock, right_lock;

static void *left_first(void *unused) {
    pthread_mutex_lock(&left_lock);
    pthread_mutex_lock(&right_lock);
    pthread_mutex_unlock(&right_lock);
    pthread_mutex_unlock(&left_lock);
    return unused;
}

static void *right_first(void *unused) {
    pthread_mutex_lock(&right_lock);
    pthread_mutex_lock(&left_lock);
    pthread_mutex_unlock(&left_lock);
    pthread_mutex_unlock(&right_lock);
    return unused;
}

static int until_deadlock(int from) {
    for (int run = from; run < from + 100000; run++) {
        pthread_t a, b;
        pthread_mutex_init(&left_lock, 0);
        pthread_mutex_init(&right_lock, 0);
        uint32_t begun = begin_run(run);
        if (begun == 1) {
            printf("exhausted=%d\n", run);
            return 0;
        }
        CHECK(begun == 0);
        CHECK(pthread_create(&a, 0, left_first, 0) == 0);
        CHECK(pthread_create(&b, 0, right_first, 0) == 0);
        CHECK(pthread_join(a, 0) == 0 && pthread_join(b, 0) == 0);
        end_run(0, 0);
    }
    return 1;
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    int runs = atoi(argv[2]);
    begin_run = dlsym(RTLD_DEFAULT, "waylay_control_begin_run");
    end_run = dlsym(RTLD_DEFAULT, "waylay_control_end_run");
    stop_run = dlsym(RTLD_DEFAULT, "waylay_control_stop_run");
    CHECK(begin_run && end_run && stop_run);
    if (!strcmp(argv[1], "pool")) return leftovers(pool);
    if (!strcmp(argv[1], "reader")) return leftovers(reader_left);
    if (!strcmp(argv[1], "ticker")) return leftovers(ticker);
    if (!strcmp(argv[1], "stuck")) return leftovers(stuck);
    if (!strcmp(argv[1], "stopping")) return stopping();
    if (!strcmp(argv[1], "last")) return last_one();
    if (!strcmp(argv[1], "deadlock")) return until_deadlock(runs);
    pthread_key_create(&key, destroy);
    pthread_key_create(&plain_key, 0);
    void (*test)(void) = !strcmp(argv[1], "order")   ? order
                         : !strcmp(argv[1], "fresh") ? freshness
                         : !strcmp(argv[1], "busy")  ? busy
                                                     : detached;
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
        CHECK(!summary.partly_controlled);
        if (bug && first < 0) first = run;
        bugs += bug;
        steps += summary.steps;
        switches += summary.switches;
    }
    printf("runs=%d bugs=%d first=%d steps=%lu switches=%lu\n", runs, bugs, first, steps, switches);
    return 0;
}
