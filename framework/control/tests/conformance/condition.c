// Condition variables.
#include "case.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static atomic_int waiting, woken;
static int ready;

static void make(pthread_cond_t *to, clockid_t clock, int shared) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    IS(pthread_condattr_setclock(&attributes, clock), 0);
    IS(pthread_condattr_setpshared(&attributes, shared), 0);
    IS(pthread_cond_init(to, &attributes), 0);
    pthread_condattr_destroy(&attributes);
    waiting = woken = ready = 0;
}
static void *waits_until_ready(void *argument) {
    pthread_cond_t *at = argument;
    IS(pthread_mutex_lock(&mutex), 0);
    waiting++;
    while (!ready) IS(pthread_cond_wait(at, &mutex), 0);
    woken++;
    IS(pthread_mutex_unlock(&mutex), 0);
    return 0;
}
// Without a loop around it: what libc does not do without a reason, it does not do.
static void *waits_once(void *argument) {
    pthread_cond_t *at = argument;
    IS(pthread_mutex_lock(&mutex), 0);
    waiting++;
    IS(pthread_cond_wait(at, &mutex), 0);
    woken++;
    IS(pthread_mutex_trylock(&mutex), EBUSY);
    IS(pthread_mutex_unlock(&mutex), 0);
    return 0;
}
static void until_waiting(int number) {
    while (waiting < number) sched_yield();
    // Whoever counted itself holds the mutex until it waits.
    pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex);
}

#define KIND(kind, clock, shared)                                                             \
    CASE(kind##_broadcast_wakes_all, "pthread_cond_broadcast pthread_cond_wait") {            \
        make(&condition, clock, shared);                                                      \
        pthread_t threads[3];                                                                 \
        for (int i = 0; i < 3; i++) threads[i] = start(waits_once, &condition);               \
        until_waiting(3);                                                                     \
        IS(pthread_cond_broadcast(&condition), 0);                                            \
        for (int i = 0; i < 3; i++) joined(threads[i]);                                       \
        IS(woken, 3);                                                                         \
        IS(pthread_cond_destroy(&condition), 0);                                              \
    }                                                                                         \
    CASE(kind##_signal_wakes_one, "pthread_cond_signal pthread_cond_wait") {                  \
        make(&condition, clock, shared);                                                      \
        pthread_t one = start(waits_once, &condition), two = start(waits_once, &condition);   \
        until_waiting(2);                                                                     \
        IS(pthread_cond_signal(&condition), 0);                                               \
        while (woken < 1) sched_yield();                                                      \
        for (int i = 0; i < 20; i++) sched_yield();                                           \
        IS(woken, 1);                                                                         \
        IS(pthread_cond_signal(&condition), 0);                                               \
        joined(one), joined(two);                                                             \
    }                                                                                         \
    CASE(kind##_forgets_a_signal_to_nobody, "pthread_cond_signal pthread_cond_timedwait") {   \
        make(&condition, clock, shared);                                                      \
        IS(pthread_cond_signal(&condition), 0);                                               \
        IS(pthread_cond_broadcast(&condition), 0);                                            \
        struct timespec soon = in_ms(clock, 2);                                               \
        pthread_mutex_lock(&mutex);                                                           \
        IS(pthread_cond_timedwait(&condition, &mutex, &soon), ETIMEDOUT);                     \
        IS(pthread_mutex_trylock(&mutex), EBUSY);                                             \
        pthread_mutex_unlock(&mutex);                                                         \
    }                                                                                         \
    CASE(kind##_times_out_in_the_past, "pthread_cond_timedwait pthread_cond_clockwait") {     \
        make(&condition, clock, shared);                                                      \
        struct timespec past = in_ms(clock, -5), before = BEFORE_ALL_TIME;                    \
        pthread_mutex_lock(&mutex);                                                           \
        IS(pthread_cond_timedwait(&condition, &mutex, &past), ETIMEDOUT);                     \
        IS(pthread_cond_timedwait(&condition, &mutex, &before), ETIMEDOUT);                   \
        IS(pthread_cond_clockwait(&condition, &mutex, clock, &past), ETIMEDOUT);              \
        pthread_mutex_unlock(&mutex);                                                         \
    }                                                                                         \
    CASE(kind##_rejects_bad_times_and_clocks, "pthread_cond_timedwait pthread_cond_clockwait") { \
        make(&condition, clock, shared);                                                      \
        struct timespec bad = BAD_TIME, negative = {time(0) + 100, -1}, good = in_ms(clock, 2); \
        pthread_mutex_lock(&mutex);                                                           \
        IS(pthread_cond_timedwait(&condition, &mutex, &bad), EINVAL);                         \
        IS(pthread_cond_timedwait(&condition, &mutex, &negative), EINVAL);                    \
        IS(pthread_cond_clockwait(&condition, &mutex, clock, &bad), EINVAL);                  \
        IS(pthread_cond_clockwait(&condition, &mutex, CLOCK_BOOTTIME, &good), EINVAL);        \
        IS(pthread_cond_clockwait(&condition, &mutex, 9999, &good), EINVAL);                  \
        IS(pthread_mutex_trylock(&mutex), EBUSY);                                             \
        pthread_mutex_unlock(&mutex);                                                         \
    }                                                                                         \
    CASE(kind##_goes_on_behind_handlers, "pthread_cond_wait pthread_kill") {                  \
        make(&condition, clock, shared);                                                      \
        handle(SIGUSR1, 0);                                                                   \
        pthread_t thread = start(waits_once, &condition);                                     \
        until_waiting(1);                                                                     \
        poke_times(thread, SIGUSR1, 3);                                                       \
        for (int i = 0; i < 10; i++) sched_yield();                                           \
        IS(woken, 0);                                                                         \
        IS(pthread_cond_signal(&condition), 0);                                               \
        joined(thread);                                                                       \
    }                                                                                         \
    CASE(kind##_runs_handlers_without_the_mutex, "pthread_cond_wait pthread_kill") {          \
        make(&condition, clock, shared);                                                      \
        handle(SIGUSR1, SA_RESTART);                                                          \
        pthread_t thread = start(waits_until_ready, &condition);                              \
        until_waiting(1);                                                                     \
        pthread_mutex_lock(&mutex);                                                           \
        poke_times(thread, SIGUSR1, 1);                                                       \
        ready = 1;                                                                            \
        IS(pthread_cond_signal(&condition), 0);                                               \
        pthread_mutex_unlock(&mutex);                                                         \
        joined(thread);                                                                       \
    }                                                                                         \
    CASE(kind##_loses_no_signal_to_a_handler, "pthread_cond_signal pthread_kill") {           \
        make(&condition, clock, shared);                                                      \
        handle(SIGUSR1, 0);                                                                   \
        pthread_t thread = start(waits_once, &condition);                                     \
        until_waiting(1);                                                                     \
        IS(pthread_kill(thread, SIGUSR1), 0);                                                 \
        IS(pthread_cond_signal(&condition), 0);                                               \
        joined(thread);                                                                       \
    }
KIND(private, CLOCK_REALTIME, 0)
KIND(monotonic, CLOCK_MONOTONIC, 0)
KIND(shared, CLOCK_REALTIME, 1)
KIND(shared_monotonic, CLOCK_MONOTONIC, 1)

CASE(clocks_are_checked, "pthread_cond_wait") {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    IS(pthread_condattr_setclock(&attributes, 9999), EINVAL);
    IS(pthread_condattr_setclock(&attributes, CLOCK_PROCESS_CPUTIME_ID), EINVAL);
    IS(pthread_condattr_setpshared(&attributes, 99), EINVAL);
}

static void unlocks(void *unused) {
    // The mutex is held again when cleanup handlers run.
    IS(pthread_mutex_unlock(&mutex), 0);
    woken = 50;
}
static void *is_cancelled(void *argument) {
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(unlocks, 0);
    waiting++;
    for (;;) pthread_cond_wait(argument, &mutex);
    pthread_cleanup_pop(0);
    return 0;
}
CASE(waiting_is_a_cancellation_point, "pthread_cond_wait pthread_cancel") {
    make(&condition, CLOCK_REALTIME, 0);
    pthread_t thread = start(is_cancelled, &condition);
    until_waiting(1);
    IS(pthread_cancel(thread), 0);
    HOLDS(joined(thread) == PTHREAD_CANCELED);
    IS(woken, 50);
    IS(pthread_mutex_trylock(&mutex), 0);
    IS(pthread_mutex_unlock(&mutex), 0);
}
static void *is_not_cancelled(void *argument) {
    IS(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, 0), 0);
    pthread_mutex_lock(&mutex);
    waiting++;
    IS(pthread_cond_wait(argument, &mutex), 0);
    woken++;
    pthread_mutex_unlock(&mutex);
    return 0;
}
CASE(waiting_with_cancellation_off_goes_on, "pthread_cond_wait pthread_cancel pthread_setcancelstate") {
    make(&condition, CLOCK_REALTIME, 0);
    pthread_t thread = start(is_not_cancelled, &condition);
    until_waiting(1);
    IS(pthread_cancel(thread), 0);
    for (int i = 0; i < 20; i++) sched_yield();
    IS(woken, 0);
    IS(pthread_cond_signal(&condition), 0);
    HOLDS(joined(thread) == 0);
    IS(woken, 1);
}
CASE(waiting_needs_the_mutex, "pthread_cond_wait pthread_cond_timedwait") {
    make(&condition, CLOCK_REALTIME, 0);
    pthread_mutexattr_t attributes;
    pthread_mutex_t checking;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&checking, &attributes);
    struct timespec soon = in_ms(CLOCK_REALTIME, 2);
    IS(pthread_cond_wait(&condition, &checking), EPERM);
    IS(pthread_cond_timedwait(&condition, &checking, &soon), EPERM);
}
