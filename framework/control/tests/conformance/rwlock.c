// Reader-writer locks, spin locks, barriers, once and semaphores.
#include "case.h"

static pthread_rwlock_t lock;
static void make(int shared, int kind) {
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    IS(pthread_rwlockattr_setpshared(&attributes, shared), 0);
    IS(pthread_rwlockattr_setkind_np(&attributes, kind), 0);
    IS(pthread_rwlock_init(&lock, &attributes), 0);
    pthread_rwlockattr_destroy(&attributes);
}
typedef int (*Act)(pthread_rwlock_t *);
static void *acts(void *act) { return (void *)(long)((Act)act)(&lock); }
static long from_other(Act act) { return (long)joined(start(acts, act)); }

static struct timespec deadline;
static int timed_read(pthread_rwlock_t *l) { return pthread_rwlock_timedrdlock(l, &deadline); }
static int timed_write(pthread_rwlock_t *l) { return pthread_rwlock_timedwrlock(l, &deadline); }
static int clock_read(pthread_rwlock_t *l) { return pthread_rwlock_clockrdlock(l, CLOCK_MONOTONIC, &deadline); }
static int clock_write(pthread_rwlock_t *l) { return pthread_rwlock_clockwrlock(l, CLOCK_MONOTONIC, &deadline); }
static int by_no_clock_read(pthread_rwlock_t *l) { return pthread_rwlock_clockrdlock(l, 9999, &deadline); }
static int by_no_clock_write(pthread_rwlock_t *l) { return pthread_rwlock_clockwrlock(l, CLOCK_BOOTTIME, &deadline); }

static int counter;
static void *writes(void *unused) {
    for (int i = 0; i < 20; i++) {
        IS(pthread_rwlock_wrlock(&lock), 0);
        counter++;
        IS(pthread_rwlock_unlock(&lock), 0);
    }
    return unused;
}
static void *reads(void *unused) {
    for (int i = 0; i < 20; i++) {
        IS(pthread_rwlock_rdlock(&lock), 0);
        int seen = counter;
        sched_yield();
        IS(counter, seen);
        IS(pthread_rwlock_unlock(&lock), 0);
    }
    return unused;
}
static atomic_int through;
static void *gets_through(void *act) {
    IS(((Act)act)(&lock), 0);
    through = 1;
    IS(pthread_rwlock_unlock(&lock), 0);
    return 0;
}

#define KIND(kind, shared, preference)                                                       \
    CASE(kind##_excludes, "pthread_rwlock_rdlock pthread_rwlock_wrlock pthread_rwlock_unlock") { \
        make(shared, preference);                                                            \
        counter = 0;                                                                         \
        pthread_t all[] = {start(writes, 0), start(reads, 0), start(writes, 0)};             \
        for (int i = 0; i < 3; i++) joined(all[i]);                                          \
        IS(counter, 40);                                                                     \
        IS(pthread_rwlock_destroy(&lock), 0);                                                \
    }                                                                                        \
    CASE(kind##_readers_share, "pthread_rwlock_rdlock pthread_rwlock_tryrdlock pthread_rwlock_trywrlock") { \
        make(shared, preference);                                                            \
        IS(pthread_rwlock_rdlock(&lock), 0);                                                 \
        IS(from_other(pthread_rwlock_trywrlock), EBUSY);                                     \
        IS(from_other(pthread_rwlock_tryrdlock), 0);                                         \
        IS(from_other(pthread_rwlock_rdlock), 0);                                            \
        IS(pthread_rwlock_trywrlock(&lock), EBUSY);                                          \
        for (int i = 0; i < 3; i++) IS(pthread_rwlock_unlock(&lock), 0);                     \
        IS(pthread_rwlock_trywrlock(&lock), 0);                                              \
        IS(pthread_rwlock_unlock(&lock), 0);                                                 \
    }                                                                                        \
    CASE(kind##_writer_is_alone, "pthread_rwlock_wrlock pthread_rwlock_tryrdlock pthread_rwlock_trywrlock") { \
        make(shared, preference);                                                            \
        IS(pthread_rwlock_wrlock(&lock), 0);                                                 \
        IS(from_other(pthread_rwlock_tryrdlock), EBUSY);                                     \
        IS(from_other(pthread_rwlock_trywrlock), EBUSY);                                     \
        IS(pthread_rwlock_wrlock(&lock), EDEADLK);                                           \
        IS(pthread_rwlock_rdlock(&lock), EDEADLK);                                           \
        IS(pthread_rwlock_unlock(&lock), 0);                                                 \
    }                                                                                        \
    CASE(kind##_times_out, "pthread_rwlock_timedrdlock pthread_rwlock_timedwrlock pthread_rwlock_clockrdlock pthread_rwlock_clockwrlock") { \
        make(shared, preference);                                                            \
        IS(pthread_rwlock_wrlock(&lock), 0);                                                 \
        deadline = in_ms(CLOCK_REALTIME, 2);                                                 \
        IS(from_other(timed_read), ETIMEDOUT);                                               \
        deadline = in_ms(CLOCK_REALTIME, 2);                                                 \
        IS(from_other(timed_write), ETIMEDOUT);                                              \
        deadline = in_ms(CLOCK_MONOTONIC, 2);                                                \
        IS(from_other(clock_read), ETIMEDOUT);                                               \
        deadline = in_ms(CLOCK_MONOTONIC, 2);                                                \
        IS(from_other(clock_write), ETIMEDOUT);                                              \
        deadline = (struct timespec)BEFORE_ALL_TIME;                                         \
        IS(from_other(timed_write), ETIMEDOUT);                                              \
        IS(from_other(timed_read), ETIMEDOUT);                                               \
        IS(pthread_rwlock_unlock(&lock), 0);                                                 \
    }                                                                                        \
    CASE(kind##_gets_what_is_free_in_the_past, "pthread_rwlock_timedrdlock pthread_rwlock_timedwrlock") { \
        make(shared, preference);                                                            \
        deadline = (struct timespec)BEFORE_ALL_TIME;                                         \
        IS(timed_read(&lock), 0);                                                            \
        IS(pthread_rwlock_unlock(&lock), 0);                                                 \
        IS(timed_write(&lock), 0);                                                           \
        IS(pthread_rwlock_unlock(&lock), 0);                                                 \
    }                                                                                        \
    CASE(kind##_rejects_bad_times_and_clocks, "pthread_rwlock_timedrdlock pthread_rwlock_timedwrlock pthread_rwlock_clockrdlock pthread_rwlock_clockwrlock") { \
        make(shared, preference);                                                            \
        deadline = (struct timespec)BAD_TIME;                                                \
        IS(timed_read(&lock), EINVAL);                                                       \
        IS(timed_write(&lock), EINVAL);                                                      \
        IS(pthread_rwlock_wrlock(&lock), 0);                                                 \
        IS(from_other(timed_read), EINVAL);                                                  \
        IS(from_other(timed_write), EINVAL);                                                 \
        deadline = in_ms(CLOCK_REALTIME, 2);                                                 \
        IS(from_other(by_no_clock_read), EINVAL);                                            \
        IS(from_other(by_no_clock_write), EINVAL);                                           \
        IS(pthread_rwlock_unlock(&lock), 0);                                                 \
    }                                                                                        \
    CASE(kind##_survives_handlers, "pthread_rwlock_rdlock pthread_rwlock_wrlock") {          \
        make(shared, preference);                                                            \
        Act acts[] = {pthread_rwlock_rdlock, pthread_rwlock_wrlock};                         \
        for (int i = 0; i < 2; i++) {                                                        \
            handle(SIGUSR1, 0);                                                              \
            through = 0;                                                                     \
            IS(pthread_rwlock_wrlock(&lock), 0);                                             \
            pthread_t thread = start(gets_through, acts[i]);                                 \
            poke_times(thread, SIGUSR1, 2);                                                  \
            IS(through, 0);                                                                  \
            IS(pthread_rwlock_unlock(&lock), 0);                                             \
            joined(thread);                                                                  \
        }                                                                                    \
    }
KIND(reading, 0, PTHREAD_RWLOCK_PREFER_READER_NP)
KIND(writing, 0, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP)
KIND(shared, 1, PTHREAD_RWLOCK_PREFER_READER_NP)

CASE(rwlock_attributes_are_checked, "pthread_rwlock_rdlock") {
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    IS(pthread_rwlockattr_setpshared(&attributes, 99), EINVAL);
    IS(pthread_rwlockattr_setkind_np(&attributes, 99), EINVAL);
}

static pthread_spinlock_t spin;
static void *tries_spin(void *unused) { return (void *)(long)pthread_spin_trylock(&spin); }
static void *spins(void *unused) {
    for (int i = 0; i < 20; i++) {
        IS(pthread_spin_lock(&spin), 0);
        counter++;
        IS(pthread_spin_unlock(&spin), 0);
    }
    return unused;
}
static void *spins_once(void *unused) {
    IS(pthread_spin_lock(&spin), 0);
    through = 1;
    IS(pthread_spin_unlock(&spin), 0);
    return unused;
}
#define SPIN(kind, shared)                                                        \
    CASE(kind##_excludes, "pthread_spin_lock pthread_spin_unlock") {              \
        IS(pthread_spin_init(&spin, shared), 0);                                  \
        counter = 0;                                                              \
        pthread_t one = start(spins, 0), two = start(spins, 0);                   \
        joined(one), joined(two);                                                 \
        IS(counter, 40);                                                          \
        IS(pthread_spin_destroy(&spin), 0);                                       \
    }                                                                             \
    CASE(kind##_is_busy, "pthread_spin_trylock") {                                \
        IS(pthread_spin_init(&spin, shared), 0);                                  \
        IS(pthread_spin_trylock(&spin), 0);                                       \
        IS(pthread_spin_trylock(&spin), EBUSY);                                   \
        IS((long)joined(start(tries_spin, 0)), EBUSY);                            \
        IS(pthread_spin_unlock(&spin), 0);                                        \
        IS((long)joined(start(tries_spin, 0)), 0);                                \
    }                                                                             \
    CASE(kind##_survives_handlers, "pthread_spin_lock") {                         \
        IS(pthread_spin_init(&spin, shared), 0);                                  \
        handle(SIGUSR1, 0);                                                       \
        through = 0;                                                              \
        IS(pthread_spin_lock(&spin), 0);                                          \
        pthread_t thread = start(spins_once, 0);                                  \
        poke_times(thread, SIGUSR1, 2);                                           \
        IS(through, 0);                                                           \
        IS(pthread_spin_unlock(&spin), 0);                                        \
        joined(thread);                                                           \
    }
SPIN(spin_private, 0)
SPIN(spin_shared, 1)

static pthread_barrier_t barrier;
static atomic_int serial, arrived;
static void *arrives(void *rounds) {
    for (long i = 0; i < (long)rounds; i++) {
        int before = ++arrived;
        int result = pthread_barrier_wait(&barrier);
        if (result == PTHREAD_BARRIER_SERIAL_THREAD) serial++;
        else IS(result, 0);
        HOLDS(arrived >= (before + 2) / 3 * 3);
    }
    return 0;
}
static void barrier_of(int shared, unsigned count) {
    pthread_barrierattr_t attributes;
    pthread_barrierattr_init(&attributes);
    IS(pthread_barrierattr_setpshared(&attributes, shared), 0);
    IS(pthread_barrier_init(&barrier, &attributes, count), 0);
    serial = arrived = through = 0;
}
static void *passes_barrier(void *unused) {
    pthread_barrier_wait(&barrier);
    through++;
    return unused;
}
#define BARRIER(kind, shared)                                                          \
    CASE(kind##_waits_for_all, "pthread_barrier_wait") {                               \
        barrier_of(shared, 3);                                                         \
        pthread_t all[] = {start(arrives, (void *)4), start(arrives, (void *)4)};      \
        arrives((void *)4);                                                            \
        for (int i = 0; i < 2; i++) joined(all[i]);                                    \
        IS(serial, 4);                                                                 \
        IS(pthread_barrier_destroy(&barrier), 0);                                      \
    }                                                                                  \
    CASE(kind##_of_one_lets_through, "pthread_barrier_wait") {                         \
        barrier_of(shared, 1);                                                         \
        for (int i = 0; i < 3; i++) IS(pthread_barrier_wait(&barrier), PTHREAD_BARRIER_SERIAL_THREAD); \
    }                                                                                  \
    CASE(kind##_holds_against_handlers, "pthread_barrier_wait pthread_kill") {         \
        barrier_of(shared, 2);                                                         \
        handle(SIGUSR1, 0);                                                            \
        pthread_t thread = start(passes_barrier, 0);                                   \
        poke_times(thread, SIGUSR1, 4);                                                \
        for (int i = 0; i < 20; i++) sched_yield();                                    \
        IS(through, 0);                                                                \
        pthread_barrier_wait(&barrier);                                                \
        joined(thread);                                                                \
        IS(through, 1);                                                                \
    }                                                                                  \
    CASE(kind##_counts_who_handles_a_signal, "pthread_barrier_wait pthread_kill") {    \
        barrier_of(shared, 2);                                                         \
        handle(SIGUSR1, SA_RESTART);                                                   \
        pthread_t thread = start(passes_barrier, 0);                                   \
        IS(pthread_kill(thread, SIGUSR1), 0);                                          \
        pthread_barrier_wait(&barrier);                                                \
        joined(thread);                                                                \
    }                                                                                  \
    CASE(kind##_is_no_cancellation_point, "pthread_barrier_wait pthread_cancel") {     \
        barrier_of(shared, 2);                                                         \
        pthread_t thread = start(passes_barrier, 0);                                   \
        usleep(500);                                                                   \
        IS(pthread_cancel(thread), 0);                                                 \
        for (int i = 0; i < 20; i++) sched_yield();                                    \
        IS(through, 0);                                                                \
        pthread_barrier_wait(&barrier);                                                \
        HOLDS(joined(thread) == 0);                                                    \
        IS(through, 1);                                                                \
    }
BARRIER(barrier_private, 0)
BARRIER(barrier_shared, 1)
CASE(barrier_arguments_are_checked, "pthread_barrier_wait") {
    pthread_barrierattr_t attributes;
    pthread_barrierattr_init(&attributes);
    IS(pthread_barrierattr_setpshared(&attributes, 99), EINVAL);
    IS(pthread_barrier_init(&barrier, 0, 0), EINVAL);
    IS(pthread_barrier_init(&barrier, 0, 0x80000000u), EINVAL);
}

static pthread_once_t once;
static atomic_int initialised;
static void initialises(void) { sched_yield(), initialised++; }
static void *calls_once(void *unused) {
    IS(pthread_once(&once, initialises), 0);
    IS(initialised, 1);
    return unused;
}
static void waits_for_ever(void) {
    if (initialised++ == 0)
        for (;;) usleep(100000);
}
static void *is_cancelled_in_once(void *unused) {
    pthread_once(&once, waits_for_ever);
    return unused;
}
CASE(once_is_once, "pthread_once") {
    once = PTHREAD_ONCE_INIT, initialised = 0;
    pthread_t all[] = {start(calls_once, 0), start(calls_once, 0), start(calls_once, 0)};
    for (int i = 0; i < 3; i++) joined(all[i]);
    IS(initialised, 1);
}
CASE(once_begins_again_after_cancellation, "pthread_once pthread_cancel") {
    once = PTHREAD_ONCE_INIT, initialised = 0;
    pthread_t thread = start(is_cancelled_in_once, 0);
    while (!initialised) sched_yield();
    IS(pthread_cancel(thread), 0);
    HOLDS(joined(thread) == PTHREAD_CANCELED);
    IS(pthread_once(&once, waits_for_ever), 0);
    IS(initialised, 2);
}
