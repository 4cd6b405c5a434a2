// One variable, two threads, and one way after the other to order them. With a second argument the order is left out.
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long shared, copies[2];
static int broken;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_barrier_t barrier;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static sem_t semaphore;
static pthread_t starter;
static int ends[2];
static int ready;
static atomic_int flag;
static atomic_flag lock = ATOMIC_FLAG_INIT;
static _Atomic(long *) published;

static void *with_mutex(void *unused) {
    (void)unused;
    if (!broken) pthread_mutex_lock(&mutex);
    shared++;
    if (!broken) pthread_mutex_unlock(&mutex);
    return NULL;
}

static void *with_trylock(void *unused) {
    (void)unused;
    if (pthread_mutex_trylock(&mutex) == 0) {
        shared++;
        sched_yield();
        pthread_mutex_unlock(&mutex);
    } else if (broken) {
        shared++;
    }
    return NULL;
}

static void *with_rwlock(void *writes) {
    if (writes) {
        broken ? pthread_rwlock_rdlock(&rwlock) : pthread_rwlock_wrlock(&rwlock);
        shared = 1;
    } else {
        pthread_rwlock_rdlock(&rwlock);
        copies[0] = shared;
    }
    pthread_rwlock_unlock(&rwlock);
    return NULL;
}

static void *with_spinlock(void *unused) {
    (void)unused;
    if (!broken) pthread_spin_lock(&spin);
    shared++;
    if (!broken) pthread_spin_unlock(&spin);
    return NULL;
}

// What is handed over is used after the lock was given back.
static void *with_condition(void *produces) {
    if (produces) {
        shared = 5;
        pthread_mutex_lock(&mutex);
        ready = 1;
        pthread_cond_signal(&condition);
        pthread_mutex_unlock(&mutex);
        return NULL;
    }
    pthread_mutex_lock(&mutex);
    while (!ready && !broken) pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
    copies[0] = shared;
    return NULL;
}

static void *with_barrier(void *second) {
    int me = second != NULL;
    copies[me] = me;
    if (!broken) pthread_barrier_wait(&barrier);
    return (void *)copies[!me];
}

static void *with_semaphore(void *posts) {
    if (posts) {
        shared = 5;
        sem_post(&semaphore);
    } else {
        if (!broken) sem_wait(&semaphore);
        copies[0] = shared;
    }
    return NULL;
}

static void on_signal(int number) { copies[0] = shared + number; }

static void *with_signal(void *sends) {
    if (!sends) return NULL;
    if (!broken) shared = 5;
    pthread_kill(starter, SIGUSR1);
    if (broken) shared = 5;
    return NULL;
}

static void initialise(void) { shared = 5; }

static void *with_once(void *first) {
    if (first || !broken) pthread_once(&once, initialise);
    return (void *)shared;
}

static void *with_pipe(void *writes) {
    char byte = 1;
    if (writes) {
        shared = 5;
        return (void *)write(ends[1], &byte, 1);
    }
    if (!broken && read(ends[0], &byte, 1) != 1) return NULL;
    return (void *)shared;
}

static void *with_join(void *writes) {
    if (writes) shared = 5;
    return NULL;
}

static void *with_release(void *writes) {
    if (writes) {
        shared = 5;
        atomic_store_explicit(&flag, 1, memory_order_release);
    } else if (atomic_load_explicit(&flag, memory_order_acquire) || broken) {
        copies[0] = shared;
    }
    return NULL;
}

static void *with_waiting(void *writes) {
    if (writes) {
        shared = 5;
        atomic_store_explicit(&flag, 1, memory_order_release);
        if (broken) shared = 6;
    } else {
        while (!atomic_load_explicit(&flag, memory_order_acquire)) {
        }
        copies[0] = shared;
    }
    return NULL;
}

static void *with_sequential(void *writes) {
    if (writes) {
        shared = 5;
        flag = 1;
    } else if (flag || broken) {
        copies[0] = shared;
    }
    return NULL;
}

static void *with_own_lock(void *unused) {
    (void)unused;
    while (!broken && atomic_flag_test_and_set(&lock)) {
    }
    shared++;
    if (!broken) atomic_flag_clear_explicit(&lock, memory_order_release);
    return NULL;
}

static void *with_pointer(void *writes) {
    if (writes) {
        long *fresh = malloc(sizeof *fresh);
        *fresh = 5;
        atomic_store_explicit(&published, fresh, memory_order_release);
        if (broken) *fresh = 6;
        return NULL;
    }
    long *seen = atomic_load_explicit(&published, memory_order_acquire);
    return seen ? (void *)*seen : NULL;
}

#ifdef __SANITIZE_THREAD__
void __tsan_acquire(void *);
void __tsan_release(void *);
#else
#define __tsan_acquire(address) (void)(address)
#define __tsan_release(address) (void)(address)
#endif

static void *(*volatile copy)(void *, const void *, size_t) = memcpy;

// Ordered in a way that only the program knows, because libc does the accesses; it says so.
static void *with_annotation(void *writes) {
    static int done;
    int seen = 1;
    if (writes) {
        shared = 5;
        if (!broken) __tsan_release(&shared);
        copy(&done, &seen, sizeof done);
        return NULL;
    }
    copy(&seen, &done, sizeof done);
    if (seen) {
        if (!broken) __tsan_acquire(&shared);
        copies[0] = shared;
    }
    return NULL;
}

// Each has blocks of its own, at addresses that the other had before.
static void *with_heap(void *unused) {
    (void)unused;
    for (int i = 0; i < 4; i++) {
        long *block = malloc(64);
        block[i] = i;
        if (broken) copies[0] += block[i];
        free(block);
    }
    return NULL;
}

static struct owned {
    atomic_int owners;
    int counted;
    long value;
} *owned;

// Who comes last frees; who is not the last must not look again.
static void *with_owners(void *unused) {
    (void)unused;
    long seen = owned->value;
    if (atomic_fetch_sub(&owned->owners, 1) == 1) {
        free(owned);
    } else if (broken) {
        seen += owned->value;
    }
    return (void *)seen;
}

// The same with a count under a lock.
static void *with_count(void *unused) {
    (void)unused;
    struct owned *thing = owned;
    long seen = thing->value;
    pthread_mutex_lock(&mutex);
    int left = --thing->counted;
    pthread_mutex_unlock(&mutex);
    if (left == 0) {
        free(realloc(thing, 100000));
    } else if (broken) {
        seen += thing->value;
    }
    return (void *)seen;
}

static __attribute__((noinline)) void fill(volatile char *room, int bytes) {
    for (int i = 0; i < bytes; i++) room[i] = (char)i;
}

// A thread that nobody joins; its stack may be given to the next.
static void *with_stack(void *unused) {
    (void)unused;
    char room[256];
    fill(room, sizeof room);
    if (broken) shared++;
    return NULL;
}

static const struct {
    const char *name;
    void *(*run)(void *);
} ways[] = {
    {"mutex", with_mutex},       {"trylock", with_trylock},     {"rwlock", with_rwlock},
    {"spinlock", with_spinlock}, {"condition", with_condition}, {"barrier", with_barrier},
    {"semaphore", with_semaphore}, {"once", with_once},         {"pipe", with_pipe},
    {"join", with_join},         {"release", with_release},     {"sequential", with_sequential},
    {"own-lock", with_own_lock}, {"pointer", with_pointer},     {"heap", with_heap},
    {"stack", with_stack},       {"waiting", with_waiting},     {"annotation", with_annotation},
    {"signal", with_signal},     {"owners", with_owners},       {"count", with_count},
};

int main(int count, char **arguments) {
    broken = count > 2;
    pthread_spin_init(&spin, 0);
    pthread_barrier_init(&barrier, NULL, 2);
    sem_init(&semaphore, 0, 0);
    starter = pthread_self();
    signal(SIGUSR1, on_signal);
    if (pipe(ends) != 0) return 3;
    owned = calloc(1, sizeof *owned);
    owned->owners = owned->counted = 2;
    for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (strcmp(ways[i].name, arguments[1]) != 0) continue;
        pthread_t threads[2];
        if (ways[i].run == with_stack) {
            pthread_attr_t attributes;
            pthread_attr_init(&attributes);
            pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
            for (int j = 0; j < 2; j++) {
                pthread_create(&threads[j], &attributes, with_stack, NULL);
                usleep(1000);
            }
            return 0;
        }
        pthread_create(&threads[0], NULL, ways[i].run, "");
        pthread_create(&threads[1], NULL, ways[i].run, NULL);
        if (ways[i].run == with_join && broken) copies[0] = shared;
        for (int j = 0; j < 2; j++) pthread_join(threads[j], NULL);
        if (ways[i].run == with_join) return shared != 5;
        return 0;
    }
    return 2;
}
