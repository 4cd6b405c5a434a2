// Mutexes of every kind: normal, recursive, error-checking and adaptive; private, shared, robust and with inheritance.
#include "case.h"

static void make(pthread_mutex_t *mutex, int type, int shared, int robust, int protocol) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    IS(pthread_mutexattr_settype(&attributes, type), 0);
    IS(pthread_mutexattr_setpshared(&attributes, shared), 0);
    IS(pthread_mutexattr_setrobust(&attributes, robust), 0);
    IS(pthread_mutexattr_setprotocol(&attributes, protocol), 0);
    IS(pthread_mutex_init(mutex, &attributes), 0);
    pthread_mutexattr_destroy(&attributes);
}

typedef struct {
    pthread_mutex_t mutex;
    int (*act)(pthread_mutex_t *);
    long result;
    sem_t go, done;
} Other;
static void *acts(void *argument) {
    Other *other = argument;
    other->result = other->act(&other->mutex);
    return 0;
}
// What another thread gets.
static long from_other(Other *other, int (*act)(pthread_mutex_t *)) {
    other->act = act;
    joined(start(acts, other));
    return other->result;
}
static int waits_in_vain(pthread_mutex_t *mutex) {
    struct timespec soon = in_ms(CLOCK_REALTIME, 2);
    return pthread_mutex_timedlock(mutex, &soon);
}
static int waits_by_other_clock(pthread_mutex_t *mutex) {
    struct timespec soon = in_ms(CLOCK_MONOTONIC, 2);
    return pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &soon);
}
static int waits_with_bad_time(pthread_mutex_t *mutex) {
    struct timespec bad = BAD_TIME;
    return pthread_mutex_timedlock(mutex, &bad);
}
static int waits_until_the_past(pthread_mutex_t *mutex) {
    struct timespec past = BEFORE_ALL_TIME;
    return pthread_mutex_timedlock(mutex, &past);
}
static int waits_by_no_clock(pthread_mutex_t *mutex) {
    struct timespec soon = in_ms(CLOCK_MONOTONIC, 2);
    return pthread_mutex_clocklock(mutex, CLOCK_PROCESS_CPUTIME_ID, &soon);
}
static int passes(pthread_mutex_t *mutex) {
    int result = pthread_mutex_lock(mutex);
    if (result == 0) result = pthread_mutex_unlock(mutex);
    return result;
}
static int takes_and_dies(pthread_mutex_t *mutex) { return pthread_mutex_lock(mutex); }

static int counter;
static void *counts(void *argument) {
    Other *other = argument;
    for (int i = 0; i < 20; i++) {
        IS(pthread_mutex_lock(&other->mutex), 0);
        counter++;
        IS(pthread_mutex_unlock(&other->mutex), 0);
    }
    return 0;
}
static void *holds_for_handlers(void *argument) {
    Other *other = argument;
    IS(pthread_mutex_lock(&other->mutex), 0);
    IS(pthread_mutex_unlock(&other->mutex), 0);
    sem_post(&other->done);
    return 0;
}

#define KIND(kind, type, shared, robust, protocol)                                                             \
    CASE(kind##_excludes, "pthread_mutex_lock pthread_mutex_unlock") {                                         \
        Other other;                                                                                           \
        make(&other.mutex, type, shared, robust, protocol);                                                    \
        counter = 0;                                                                                           \
        pthread_t one = start(counts, &other), two = start(counts, &other);                                    \
        joined(one), joined(two);                                                                              \
        IS(counter, 40);                                                                                       \
        IS(pthread_mutex_destroy(&other.mutex), 0);                                                            \
    }                                                                                                          \
    CASE(kind##_is_busy, "pthread_mutex_trylock pthread_mutex_lock") {                                         \
        Other other;                                                                                           \
        make(&other.mutex, type, shared, robust, protocol);                                                    \
        IS(pthread_mutex_lock(&other.mutex), 0);                                                               \
        IS(from_other(&other, pthread_mutex_trylock), EBUSY);                                                  \
        if (!robust) IS(pthread_mutex_destroy(&other.mutex), EBUSY);                                           \
        IS(pthread_mutex_unlock(&other.mutex), 0);                                                             \
        IS(pthread_mutex_trylock(&other.mutex), 0);                                                            \
        IS(pthread_mutex_unlock(&other.mutex), 0);                                                             \
    }                                                                                                          \
    CASE(kind##_times_out, "pthread_mutex_timedlock pthread_mutex_clocklock") {                                \
        Other other;                                                                                           \
        make(&other.mutex, type, shared, robust, protocol);                                                    \
        IS(pthread_mutex_lock(&other.mutex), 0);                                                               \
        IS(from_other(&other, waits_in_vain), ETIMEDOUT);                                                      \
        if (!protocol) IS(from_other(&other, waits_until_the_past), ETIMEDOUT);                                \
        if (protocol == PTHREAD_PRIO_NONE) IS(from_other(&other, waits_by_other_clock), ETIMEDOUT);            \
        IS(pthread_mutex_unlock(&other.mutex), 0);                                                             \
    }                                                                                                          \
    CASE(kind##_rejects_a_bad_time, "pthread_mutex_timedlock pthread_mutex_clocklock") {                       \
        Other other;                                                                                           \
        struct timespec bad = BAD_TIME;                                                                        \
        make(&other.mutex, type, shared, robust, protocol);                                                    \
        IS(pthread_mutex_timedlock(&other.mutex, &bad), 0);                                                    \
        IS(from_other(&other, waits_with_bad_time), EINVAL);                                                   \
        IS(from_other(&other, waits_by_no_clock), EINVAL);                                                     \
        IS(pthread_mutex_unlock(&other.mutex), 0);                                                             \
    }                                                                                                          \
    CASE(kind##_survives_handlers, "pthread_mutex_lock") {                                                     \
        Other other;                                                                                           \
        make(&other.mutex, type, shared, robust, protocol);                                                    \
        sem_init(&other.done, 0, 0);                                                                           \
        handle(SIGUSR1, 0);                                                                                    \
        IS(pthread_mutex_lock(&other.mutex), 0);                                                               \
        pthread_t waiter = start(holds_for_handlers, &other);                                                  \
        poke_times(waiter, SIGUSR1, 2);                                                                        \
        FAILS(sem_trywait(&other.done), EAGAIN);                                                               \
        IS(pthread_mutex_unlock(&other.mutex), 0);                                                             \
        joined(waiter);                                                                                        \
    }

KIND(normal, PTHREAD_MUTEX_NORMAL, 0, 0, 0)
KIND(recursive, PTHREAD_MUTEX_RECURSIVE, 0, 0, 0)
KIND(checking, PTHREAD_MUTEX_ERRORCHECK, 0, 0, 0)
KIND(adaptive, PTHREAD_MUTEX_ADAPTIVE_NP, 0, 0, 0)
KIND(shared, PTHREAD_MUTEX_NORMAL, 1, 0, 0)
KIND(shared_recursive, PTHREAD_MUTEX_RECURSIVE, 1, 0, 0)
KIND(robust, PTHREAD_MUTEX_NORMAL, 0, 1, 0)
KIND(robust_recursive, PTHREAD_MUTEX_RECURSIVE, 0, 1, 0)
KIND(robust_checking, PTHREAD_MUTEX_ERRORCHECK, 0, 1, 0)
KIND(shared_robust, PTHREAD_MUTEX_NORMAL, 1, 1, 0)
KIND(inheriting, PTHREAD_MUTEX_NORMAL, 0, 0, PTHREAD_PRIO_INHERIT)
KIND(inheriting_recursive, PTHREAD_MUTEX_RECURSIVE, 0, 0, PTHREAD_PRIO_INHERIT)
KIND(inheriting_checking, PTHREAD_MUTEX_ERRORCHECK, 0, 0, PTHREAD_PRIO_INHERIT)

#define RECURSION(kind, shared, robust, protocol)                                                 \
    CASE(kind##_counts, "pthread_mutex_lock pthread_mutex_trylock pthread_mutex_unlock") {        \
        Other other;                                                                              \
        make(&other.mutex, PTHREAD_MUTEX_RECURSIVE, shared, robust, protocol);                    \
        struct timespec soon = in_ms(CLOCK_REALTIME, 2);                                          \
        IS(pthread_mutex_lock(&other.mutex), 0);                                                  \
        IS(pthread_mutex_lock(&other.mutex), 0);                                                  \
        IS(pthread_mutex_trylock(&other.mutex), 0);                                               \
        IS(pthread_mutex_timedlock(&other.mutex, &soon), 0);                                      \
        for (int i = 0; i < 3; i++) {                                                             \
            IS(pthread_mutex_unlock(&other.mutex), 0);                                            \
            IS(from_other(&other, pthread_mutex_trylock), EBUSY);                                 \
        }                                                                                         \
        IS(pthread_mutex_unlock(&other.mutex), 0);                                                \
        IS(from_other(&other, passes), 0);                                                        \
        IS(pthread_mutex_unlock(&other.mutex), EPERM);                                            \
    }
RECURSION(recursion, 0, 0, 0)
RECURSION(shared_recursion, 1, 0, 0)
RECURSION(robust_recursion, 0, 1, 0)
RECURSION(inheriting_recursion, 0, 0, PTHREAD_PRIO_INHERIT)

#define CHECKING(kind, shared, robust, protocol)                                                  \
    CASE(kind##_checks_its_owner, "pthread_mutex_lock pthread_mutex_unlock pthread_mutex_timedlock") { \
        Other other;                                                                              \
        make(&other.mutex, PTHREAD_MUTEX_ERRORCHECK, shared, robust, protocol);                   \
        struct timespec soon = in_ms(CLOCK_REALTIME, 2);                                          \
        IS(pthread_mutex_unlock(&other.mutex), EPERM);                                            \
        IS(pthread_mutex_lock(&other.mutex), 0);                                                  \
        IS(pthread_mutex_lock(&other.mutex), EDEADLK);                                            \
        IS(pthread_mutex_timedlock(&other.mutex, &soon), EDEADLK);                                \
        IS(pthread_mutex_trylock(&other.mutex), robust || protocol ? EDEADLK : EBUSY);            \
        IS(from_other(&other, pthread_mutex_unlock), EPERM);                                      \
        IS(pthread_mutex_unlock(&other.mutex), 0);                                                \
        IS(pthread_mutex_unlock(&other.mutex), EPERM);                                            \
    }
CHECKING(checking_alone, 0, 0, 0)
CHECKING(checking_shared, 1, 0, 0)
CHECKING(checking_robust, 0, 1, 0)
CHECKING(checking_inheriting, 0, 0, PTHREAD_PRIO_INHERIT)

#define DEATH(kind, type, shared)                                                                 \
    CASE(kind##_tells_of_a_death, "pthread_mutex_lock pthread_mutex_unlock") {                    \
        Other other;                                                                              \
        make(&other.mutex, type, shared, 1, 0);                                                   \
        IS(from_other(&other, takes_and_dies), 0);                                                \
        IS(pthread_mutex_lock(&other.mutex), EOWNERDEAD);                                         \
        IS(pthread_mutex_consistent(&other.mutex), 0);                                            \
        IS(pthread_mutex_unlock(&other.mutex), 0);                                                \
        IS(pthread_mutex_lock(&other.mutex), 0);                                                  \
        IS(pthread_mutex_unlock(&other.mutex), 0);                                                \
    }                                                                                             \
    CASE(kind##_is_lost_when_nobody_mends_it, "pthread_mutex_trylock pthread_mutex_lock") { \
        Other other;                                                                              \
        make(&other.mutex, type, shared, 1, 0);                                                   \
        IS(from_other(&other, takes_and_dies), 0);                                                \
        IS(pthread_mutex_trylock(&other.mutex), EOWNERDEAD);                                      \
        IS(pthread_mutex_unlock(&other.mutex), 0);                                                \
        IS(pthread_mutex_lock(&other.mutex), ENOTRECOVERABLE);                                    \
        IS(pthread_mutex_trylock(&other.mutex), ENOTRECOVERABLE);                                 \
    }                                                                                             \
    CASE(kind##_wakes_who_waits_for_the_dead, "pthread_mutex_lock") {                             \
        Other other;                                                                              \
        make(&other.mutex, type, shared, 1, 0);                                                   \
        sem_init(&other.go, 0, 0), sem_init(&other.done, 0, 0);                                   \
        pthread_t owner = start(owns_for_a_while, &other);                                        \
        sem_wait(&other.done);                                                                    \
        other.act = pthread_mutex_lock;                                                           \
        pthread_t waiter = start(acts, &other);                                                   \
        usleep(1000);                                                                             \
        sem_post(&other.go);                                                                      \
        joined(owner), joined(waiter);                                                            \
        IS(other.result, EOWNERDEAD);                                                             \
    }
static void *owns_for_a_while(void *argument) {
    Other *other = argument;
    IS(pthread_mutex_lock(&other->mutex), 0);
    sem_post(&other->done);
    sem_wait(&other->go);
    return 0;
}
DEATH(robust_normal, PTHREAD_MUTEX_NORMAL, 0)
DEATH(robust_counting, PTHREAD_MUTEX_RECURSIVE, 0)
DEATH(robust_careful, PTHREAD_MUTEX_ERRORCHECK, 0)
DEATH(robust_shared, PTHREAD_MUTEX_NORMAL, 1)

CASE(consistent_only_what_needs_it, "pthread_mutex_lock") {
    pthread_mutex_t mutex;
    make(&mutex, PTHREAD_MUTEX_NORMAL, 0, 1, 0);
    IS(pthread_mutex_consistent(&mutex), EINVAL);
    make(&mutex, PTHREAD_MUTEX_NORMAL, 0, 0, 0);
    IS(pthread_mutex_consistent(&mutex), EINVAL);
}
CASE(attributes_are_checked, "pthread_mutex_lock") {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    int value = 0;
    IS(pthread_mutexattr_settype(&attributes, 99), EINVAL);
    IS(pthread_mutexattr_setpshared(&attributes, 99), EINVAL);
    IS(pthread_mutexattr_setrobust(&attributes, 99), EINVAL);
    IS(pthread_mutexattr_setprotocol(&attributes, 99), EINVAL);
    IS(pthread_mutexattr_setprioceiling(&attributes, 1000), EINVAL);
    IS(pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE), 0);
    IS(pthread_mutexattr_gettype(&attributes, &value), 0);
    IS(value, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutexattr_destroy(&attributes);
}
CASE(ceiling_is_only_for_protected_ones, "pthread_mutex_lock") {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    int old;
    IS(pthread_mutex_getprioceiling(&mutex, &old), EINVAL);
    IS(pthread_mutex_setprioceiling(&mutex, 1, &old), EINVAL);
}
CASE(normal_deadlock_ends_in_time, "pthread_mutex_timedlock") {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    struct timespec soon = in_ms(CLOCK_REALTIME, 2);
    IS(pthread_mutex_lock(&mutex), 0);
    IS(pthread_mutex_trylock(&mutex), EBUSY);
    IS(pthread_mutex_timedlock(&mutex, &soon), ETIMEDOUT);
    IS(pthread_mutex_unlock(&mutex), 0);
}
static void *waits_uncancelled(void *argument) {
    IS(pthread_mutex_lock(argument), 0);
    IS(pthread_mutex_unlock(argument), 0);
    handled = 100;
    pthread_testcancel();
    return 0;
}
CASE(locking_is_no_cancellation_point, "pthread_mutex_lock pthread_cancel") {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    handled = 0;
    IS(pthread_mutex_lock(&mutex), 0);
    pthread_t thread = start(waits_uncancelled, &mutex);
    usleep(1000);
    IS(pthread_cancel(thread), 0);
    usleep(1000);
    IS(pthread_mutex_unlock(&mutex), 0);
    HOLDS(joined(thread) == PTHREAD_CANCELED);
    IS(handled, 100);
}
