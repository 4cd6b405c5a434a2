// One variable, two threads, and atomic operations whose memory orders order them. With a second argument one promises too little:
// nothing that a run on x86 shows, and a race by the language.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

long shared;
static int broken;
static atomic_int flag;
static _Atomic(long *) published;

// An order that is no constant would be compiled as the strongest one.
#define STORE(at, value, right)                                                                \
    (broken ? atomic_store_explicit(at, value, memory_order_relaxed) : atomic_store_explicit(at, value, memory_order_##right))
#define LOAD(at, right)                                                                        \
    (broken ? atomic_load_explicit(at, memory_order_relaxed) : atomic_load_explicit(at, memory_order_##right))

static void *publishes(void *unused) {
    shared = 1;
    STORE(&flag, 1, release);
    return unused;
}
static void *takes_over(void *unused) {
    if (atomic_load_explicit(&flag, memory_order_acquire)) shared++;
    return unused;
}

static void *publishes_rightly(void *unused) {
    shared = 1;
    atomic_store_explicit(&flag, 1, memory_order_release);
    return unused;
}
static void *only_looks(void *unused) {
    if (LOAD(&flag, acquire)) shared++;
    return unused;
}

static void *publishes_behind_a_fence(void *unused) {
    shared = 1;
    if (!broken) atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&flag, 1, memory_order_relaxed);
    return unused;
}
static void *takes_over_before_a_fence(void *unused) {
    if (atomic_load_explicit(&flag, memory_order_relaxed)) {
        atomic_thread_fence(memory_order_acquire);
        shared++;
    }
    return unused;
}

// An update between the two continues what the first began, however little it promises; a store does not.
static void *comes_between(void *unused) {
    while (!atomic_load_explicit(&flag, memory_order_relaxed)) sched_yield();
    if (broken) atomic_store_explicit(&flag, 2, memory_order_relaxed);
    else atomic_fetch_add_explicit(&flag, 1, memory_order_relaxed);
    return unused;
}
static void *is_third(void *unused) {
    while (atomic_load_explicit(&flag, memory_order_acquire) != 2) sched_yield();
    shared++;
    return unused;
}

static void *with_own_lock(void *unused) {
    while (atomic_exchange_explicit(&flag, 1, memory_order_acquire)) sched_yield();
    shared++;
    STORE(&flag, 0, release);
    return unused;
}

// The last owner frees.
typedef struct {
    atomic_int owners;
    long value;
} Counted;
static Counted *counted;
static void *gives_up(void *unused) {
    counted->value++;
    int left = broken ? atomic_fetch_sub_explicit(&counted->owners, 1, memory_order_relaxed)
                      : atomic_fetch_sub_explicit(&counted->owners, 1, memory_order_release);
    if (left == 1) {
        atomic_thread_fence(memory_order_acquire);
        free(counted);
    }
    return unused;
}
static void *reads_and_gives_up(void *unused) {
    if (atomic_fetch_sub_explicit(&counted->owners, 1, memory_order_acq_rel) == 1) free(counted);
    return unused;
}

static void *makes(void *unused) {
    static long made;
    made = 7;
    STORE(&published, &made, release);
    return unused;
}
static void *uses(void *unused) {
    long *found = atomic_load_explicit(&published, memory_order_consume);
    if (found && *found != 7) abort();
    return unused;
}

static void both(void *(*one)(void *), void *(*other)(void *), void *(*third)(void *)) {
    void *(*routines[])(void *) = {one, other, third};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        if (routines[i]) pthread_create(&threads[i], 0, routines[i], 0);
    for (int i = 0; i < 3; i++)
        if (routines[i]) pthread_join(threads[i], 0);
}

int main(int argc, char **argv) {
    broken = argc > 2;
    const char *way = argv[1];
    if (!strcmp(way, "release")) both(publishes, takes_over, 0);
    if (!strcmp(way, "acquire")) both(publishes_rightly, only_looks, 0);
    if (!strcmp(way, "fences")) both(publishes_behind_a_fence, takes_over_before_a_fence, 0);
    if (!strcmp(way, "updates")) both(publishes_rightly, comes_between, is_third);
    if (!strcmp(way, "own-lock")) both(with_own_lock, with_own_lock, 0);
    if (!strcmp(way, "pointer")) both(makes, uses, 0);
    if (!strcmp(way, "owners")) {
        counted = malloc(sizeof *counted);
        counted->owners = 2;
        both(gives_up, reads_and_gives_up, 0);
    }
    return 0;
}
