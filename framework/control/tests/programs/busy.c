/* Threads that wait and change something in every round, so that none of it looks idle: busy.c MODE POLITENESS WAITERS. Ends
   by itself, with 0, once the last thread has run, except in the mode "endless". */
#include "check.h"
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>

static const char *mode, *politeness;
static atomic_int enough, rounds;
static atomic_long word;
static atomic_int slots[64];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int done;
static sem_t turn[2];

static void polite(void)
{
    if (!strcmp(politeness, "pause"))
        __builtin_ia32_pause();
    else if (!strcmp(politeness, "yield"))
        sched_yield();
}

static void *counts(void *unused)
{
    for (; !atomic_load(&enough); polite())
        atomic_fetch_add(&rounds, 1);
    return unused;
}

static void *exchanges(void *unused)
{
    for (;; polite()) {
        long seen = atomic_load(&word);
        if (seen & 1)
            return unused;
        atomic_compare_exchange_strong(&word, &seen, seen + 2);
    }
}

static void *scatters(void *unused)
{
    for (unsigned i = 1; !atomic_load(&enough); polite()) {
        i = i * 1664525 + 1013904223;
        atomic_fetch_xor(&slots[i >> 26], i);
    }
    return unused;
}

static void *locks(void *unused)
{
    for (int seen = 0; !seen; polite()) {
        pthread_mutex_lock(&lock);
        seen = done;
        rounds++;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

/* Two hand a turn to each other until it is enough. */
static void *hands_over(void *name)
{
    long me = (long)name % 2;
    for (int seen = 0; !seen; polite()) {
        sem_wait(&turn[me]);
        seen = atomic_load(&enough);
        atomic_fetch_add(&rounds, 1);
        sem_post(&turn[!me]);
    }
    return name;
}

static void *never(void *name)
{
    for (; !atomic_load(&slots[(long)name]); polite())
        atomic_fetch_add(&rounds, 1);
    return name;
}

static void *ends_it(void *unused)
{
    for (int i = 0; i < 5; i++)
        atomic_fetch_add(&slots[63], 1);
    pthread_mutex_lock(&lock);
    done = 1;
    pthread_mutex_unlock(&lock);
    atomic_fetch_or(&word, 1);
    atomic_store(&enough, 1);
    return unused;
}

int main(int argc, char **argv)
{
    CHECK(argc == 4);
    mode = argv[1], politeness = argv[2];
    const struct {
        const char *name;
        void *(*routine)(void *);
    } modes[] = {{"counts", counts}, {"exchanges", exchanges}, {"scatters", scatters},
                 {"locks", locks},   {"hands_over", hands_over}, {"endless", never}};
    long waiters = atol(argv[3]);
    sem_init(&turn[0], 0, 1);
    sem_init(&turn[1], 0, 0);
    pthread_t threads[8];
    for (unsigned i = 0; i < sizeof modes / sizeof *modes; i++)
        for (long k = 0; k < waiters && !strcmp(modes[i].name, mode); k++)
            pthread_create(&threads[k], 0, modes[i].routine, (void *)k);
    pthread_create(&threads[waiters], 0, ends_it, 0);
    for (long k = 0; k <= waiters; k++)
        pthread_join(threads[k], 0);
    return 0;
}
