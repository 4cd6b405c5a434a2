// Every family of calls, by name of the argument: each keeps libc's meaning under the scheduler. Exits 0.
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>
#include <threads.h>
#include <time.h>

static struct timespec in_seconds(clockid_t clock, int seconds) {
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_sec += seconds;
    return time;
}

static void run(int count, void *(*routine)(void *)) {
    pthread_t threads[8];
    for (long i = 0; i < count; i++) CHECK(pthread_create(&threads[i], 0, routine, (void *)i) == 0);
    for (int i = 0; i < count; i++) CHECK(pthread_join(threads[i], 0) == 0);
}

static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER, recursive, checking, inheriting, robust;
static int counter;

static void *mutexes(void *unused) {
    for (int i = 0; i < 5; i++) {
        pthread_mutex_lock(&plain);
        int seen = counter;
        sched_yield();
        counter = seen + 1;
        pthread_mutex_unlock(&plain);

        CHECK(pthread_mutex_lock(&recursive) == 0);
        CHECK(pthread_mutex_lock(&recursive) == 0);
        CHECK(pthread_mutex_unlock(&recursive) == 0);
        sched_yield();
        CHECK(pthread_mutex_unlock(&recursive) == 0);

        CHECK(pthread_mutex_lock(&checking) == 0);
        CHECK(pthread_mutex_lock(&checking) == EDEADLK);
        sched_yield();
        CHECK(pthread_mutex_unlock(&checking) == 0);
        CHECK(pthread_mutex_unlock(&checking) == EPERM);

        CHECK(pthread_mutex_lock(&inheriting) == 0);
        sched_yield();
        CHECK(pthread_mutex_unlock(&inheriting) == 0);

        int error = pthread_mutex_trylock(&plain);
        CHECK(error == 0 || error == EBUSY);
        if (error == 0) pthread_mutex_unlock(&plain);
        struct timespec soon = in_seconds(CLOCK_MONOTONIC, 3600);
        error = pthread_mutex_clocklock(&plain, CLOCK_MONOTONIC, &soon);
        CHECK(error == 0 || error == ETIMEDOUT);
        if (error == 0) pthread_mutex_unlock(&plain);
    }
    return unused;
}

static void all_mutexes(void) {
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&recursive, &kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&checking, &kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_NORMAL);
    pthread_mutexattr_setprotocol(&kind, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&inheriting, &kind);
    run(3, mutexes);
    CHECK(counter == 15);
    pthread_mutex_lock(&plain);
    struct timespec soon = in_seconds(CLOCK_REALTIME, 3600);
    CHECK(pthread_mutex_timedlock(&plain, &soon) == ETIMEDOUT);
    pthread_mutex_unlock(&plain);
}

static void *dies_with_lock(void *unused) {
    CHECK(pthread_mutex_lock(&robust) == 0);
    return unused;
}

static int inherited;
static void *takes_or_inherits(void *unused) {
    int result = pthread_mutex_lock(&robust);
    CHECK(result == 0 || result == EOWNERDEAD);
    if (result == 0) return unused;
    inherited++;
    CHECK(pthread_mutex_consistent(&robust) == 0);
    // The next one inherits it as well.
    return unused;
}

static void robust_mutex(void) {
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&robust, &kind);
    run(1, dies_with_lock);
    CHECK(pthread_mutex_lock(&robust) == EOWNERDEAD);
    CHECK(pthread_mutex_consistent(&robust) == 0);
    CHECK(pthread_mutex_unlock(&robust) == 0);
    run(4, takes_or_inherits);
    CHECK(inherited == 3);
    CHECK(pthread_mutex_lock(&robust) == EOWNERDEAD);
}

static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static int whose;

static void *in_turn(void *number) {
    for (int round = 0; round < 3; round++) {
        pthread_mutex_lock(&plain);
        while (whose % 3 != (long)number) pthread_cond_wait(&turn, &plain);
        whose++;
        pthread_cond_broadcast(&turn);
        pthread_mutex_unlock(&plain);
    }
    return 0;
}

static void conditions(void) {
    run(3, in_turn);
    CHECK(whose == 9);
    pthread_mutex_lock(&plain);
    struct timespec later = in_seconds(CLOCK_REALTIME, 3600);
    CHECK(pthread_cond_timedwait(&turn, &plain, &later) == ETIMEDOUT);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    CHECK(now.tv_sec >= later.tv_sec);
    later = in_seconds(CLOCK_MONOTONIC, 3600);
    CHECK(pthread_cond_clockwait(&turn, &plain, CLOCK_MONOTONIC, &later) == ETIMEDOUT);
    CHECK(pthread_mutex_trylock(&plain) == EBUSY);
    pthread_mutex_unlock(&plain);
    CHECK(pthread_cond_destroy(&turn) == 0);
}

static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
static volatile int readers, writers;

static void *reads_and_writes(void *unused) {
    for (int i = 0; i < 5; i++) {
        pthread_rwlock_rdlock(&shared);
        readers++;
        CHECK(writers == 0);
        sched_yield();
        readers--;
        pthread_rwlock_unlock(&shared);
        pthread_rwlock_wrlock(&shared);
        writers++;
        CHECK(writers == 1 && readers == 0);
        sched_yield();
        CHECK(pthread_rwlock_rdlock(&shared) == EDEADLK);
        writers--;
        pthread_rwlock_unlock(&shared);
        if (pthread_rwlock_tryrdlock(&shared) == 0) pthread_rwlock_unlock(&shared);
        if (pthread_rwlock_trywrlock(&shared) == 0) pthread_rwlock_unlock(&shared);
    }
    return unused;
}

static void *write_is_refused(void *unused) {
    struct timespec later = in_seconds(CLOCK_REALTIME, 5);
    CHECK(pthread_rwlock_timedwrlock(&shared, &later) == ETIMEDOUT);
    CHECK(pthread_rwlock_tryrdlock(&shared) == 0);
    pthread_rwlock_unlock(&shared);
    return unused;
}

static void rwlocks(void) {
    run(3, reads_and_writes);
    pthread_rwlock_rdlock(&shared);
    run(1, write_is_refused);
    pthread_rwlock_unlock(&shared);
}

static sem_t items, slots;
static int in_stock;

static void *produces(void *unused) {
    for (int i = 0; i < 6; i++) {
        sem_wait(&slots);
        __atomic_add_fetch(&in_stock, 1, __ATOMIC_SEQ_CST);
        CHECK(in_stock <= 2);
        sem_post(&items);
    }
    return unused;
}

static void *consumes(void *unused) {
    for (int i = 0; i < 6; i++) {
        sem_wait(&items);
        __atomic_sub_fetch(&in_stock, 1, __ATOMIC_SEQ_CST);
        sem_post(&slots);
    }
    return unused;
}

static void *trades(void *number) { return (long)number % 2 ? produces(0) : consumes(0); }

static void semaphores(void) {
    sem_init(&items, 0, 0);
    sem_init(&slots, 0, 2);
    run(4, trades);
    CHECK(in_stock == 0);
    CHECK(sem_trywait(&items) == -1 && errno == EAGAIN);
    struct timespec later = in_seconds(CLOCK_REALTIME, 3600);
    CHECK(sem_timedwait(&items, &later) == -1 && errno == ETIMEDOUT);
    later = in_seconds(CLOCK_MONOTONIC, 3600);
    CHECK(sem_clockwait(&items, CLOCK_MONOTONIC, &later) == -1 && errno == ETIMEDOUT);
}

static pthread_barrier_t gate;
static int arrived, serial;

static void *meets(void *unused) {
    for (int round = 1; round <= 3; round++) {
        __atomic_add_fetch(&arrived, 1, __ATOMIC_SEQ_CST);
        if (pthread_barrier_wait(&gate) == PTHREAD_BARRIER_SERIAL_THREAD) serial++;
        CHECK(arrived >= 3 * round);
        pthread_barrier_wait(&gate);
    }
    return unused;
}

static void barriers(void) {
    pthread_barrier_init(&gate, 0, 3);
    run(3, meets);
    CHECK(serial == 3);
    CHECK(pthread_barrier_destroy(&gate) == 0);
}

static pthread_spinlock_t spin;

static void *spins(void *unused) {
    for (int i = 0; i < 5; i++) {
        pthread_spin_lock(&spin);
        int seen = counter;
        sched_yield();
        counter = seen + 1;
        pthread_spin_unlock(&spin);
        if (pthread_spin_trylock(&spin) == 0) pthread_spin_unlock(&spin);
    }
    return unused;
}

static void spin_locks(void) {
    pthread_spin_init(&spin, 0);
    run(3, spins);
    CHECK(counter == 15);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int initialised, complete;

static void initialise(void) {
    initialised++;
    sched_yield();
    complete = 1;
}

static void *wants_it_initialised(void *unused) {
    pthread_once(&once, initialise);
    CHECK(complete);
    return unused;
}

static void once_only(void) {
    run(3, wants_it_initialised);
    CHECK(initialised == 1);
}

static void *naps(void *unused) {
    struct timespec length = {3, 500};
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    CHECK(nanosleep(&length, 0) == 0);
    clock_gettime(CLOCK_MONOTONIC, &after);
    CHECK(after.tv_sec - before.tv_sec >= 3);
    CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, &length, 0) == 0);
    CHECK(usleep(1000000) == 0);
    CHECK(sleep(86400) == 0);
    return unused;
}

static void sleeps(void) {
    time_t before = time(0);
    run(3, naps);
    CHECK(time(0) - before >= 86400);
}

static void *returns_its_argument(void *argument) {
    for (int i = 0; i < 3; i++) sched_yield();
    return argument;
}

static sem_t looked;

static void *looks_whether_it_is_detached(void *wanted) {
    pthread_attr_t own;
    int state;
    CHECK(pthread_getattr_np(pthread_self(), &own) == 0);
    CHECK(pthread_attr_getdetachstate(&own, &state) == 0 && state == *(int *)wanted);
    pthread_attr_destroy(&own);
    sem_post(&looked);
    return 0;
}

static void detached(void) {
    static int states[] = {PTHREAD_CREATE_JOINABLE, PTHREAD_CREATE_DETACHED};
    sem_init(&looked, 0, 0);
    for (int round = 0; round < 4; round++) {
        pthread_attr_t attributes;
        pthread_t thread;
        pthread_attr_init(&attributes);
        pthread_attr_setdetachstate(&attributes, states[round % 2]);
        CHECK(pthread_create(&thread, &attributes, looks_whether_it_is_detached, &states[round % 2]) == 0);
        pthread_attr_destroy(&attributes);
        while (sem_wait(&looked) != 0);
        if (round % 2 == 0) CHECK(pthread_join(thread, 0) == 0);
    }
}

static void joins(void) {
    pthread_t thread;
    void *result;
    pthread_create(&thread, 0, returns_its_argument, &thread);
    int error;
    while ((error = pthread_tryjoin_np(thread, &result)) == EBUSY) sched_yield();
    CHECK(error == 0 && result == &thread);
    pthread_create(&thread, 0, returns_its_argument, &error);
    struct timespec later;
    do later = in_seconds(CLOCK_REALTIME, 60);
    while ((error = pthread_timedjoin_np(thread, &result, &later)) == ETIMEDOUT);
    CHECK(error == 0 && result == &error);
    pthread_create(&thread, 0, returns_its_argument, 0);
    do later = in_seconds(CLOCK_MONOTONIC, 60);
    while ((error = pthread_clockjoin_np(thread, &result, CLOCK_MONOTONIC, &later)) == ETIMEDOUT);
    CHECK(error == 0 && result == 0);
    pthread_create(&thread, 0, returns_its_argument, 0);
    CHECK(pthread_detach(thread) == 0);
    sleep(1);
}

static mtx_t mutex11;
static cnd_t condition11;
static once_flag flag11 = ONCE_FLAG_INIT;

static int c11_thread(void *number) {
    call_once(&flag11, initialise);
    CHECK(complete);
    for (int round = 0; round < 3; round++) {
        CHECK(mtx_lock(&mutex11) == thrd_success);
        while (whose % 2 != (long)number) CHECK(cnd_wait(&condition11, &mutex11) == thrd_success);
        whose++;
        cnd_broadcast(&condition11);
        mtx_unlock(&mutex11);
        thrd_yield();
        struct timespec nap = {1, 0};
        thrd_sleep(&nap, 0);
    }
    return 7 + (int)(long)number;
}

static void c11(void) {
    mtx_init(&mutex11, mtx_timed);
    cnd_init(&condition11);
    thrd_t threads[2];
    for (long i = 0; i < 2; i++) CHECK(thrd_create(&threads[i], c11_thread, (void *)i) == thrd_success);
    for (int i = 0; i < 2; i++) {
        int result;
        CHECK(thrd_join(threads[i], &result) == thrd_success && result == 7 + i);
    }
    CHECK(initialised == 1 && whose == 6);
    mtx_lock(&mutex11);
    struct timespec later = in_seconds(CLOCK_REALTIME, 10);
    CHECK(mtx_trylock(&mutex11) == thrd_busy);
    CHECK(mtx_timedlock(&mutex11, &later) == thrd_timedout);
    CHECK(cnd_timedwait(&condition11, &mutex11, &later) == thrd_timedout);
    mtx_unlock(&mutex11);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*test)(void);
    } tests[] = {
        {"mutexes", all_mutexes}, {"robust", robust_mutex}, {"conditions", conditions}, {"rwlocks", rwlocks},
        {"semaphores", semaphores}, {"barriers", barriers}, {"spin", spin_locks}, {"once", once_only},
        {"sleeps", sleeps}, {"joins", joins}, {"detached", detached}, {"c11", c11},
    };
    for (unsigned i = 0; i < sizeof tests / sizeof *tests; i++)
        if (argc > 1 && !strcmp(argv[1], tests[i].name)) {
            tests[i].test();
            return 0;
        }
    return 2;
}
