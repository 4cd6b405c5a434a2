/* One function serves what threads share and, mostly, what each has for itself. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#define OWN 50

struct tally {
    long hits, last;
};

static struct tally *shared;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static __attribute__((noinline)) struct tally *make(void) { return calloc(1, sizeof(struct tally)); }

static __attribute__((noinline)) void hit(struct tally *tally, long value)
{
    tally->hits = tally->hits + value;
    tally->last = value;
}

static void *customer(void *unused)
{
    struct tally *own = make();
    for (int i = 0; i < OWN; i++)
        hit(own, 2);
#ifdef FIXED
    pthread_mutex_lock(&lock);
#endif
    hit(shared, 1);
#ifdef FIXED
    pthread_mutex_unlock(&lock);
#endif
    assert(own->hits == 2 * OWN);
    free(own);
    return unused;
}

int main(void)
{
    (void)lock;
    shared = make();
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, customer, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    assert(shared->hits == 3);
    free(shared);
    return 0;
}
