/* A reference count. The bug: looking whether one is the last and giving up one's share are two operations, so that two
   threads may both be the last. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

static atomic_int shares = 2, freed;

static void *drop(void *x)
{
#ifdef FIXED
    if (atomic_fetch_sub(&shares, 1) == 1)
        atomic_fetch_add(&freed, 1);
#else
    atomic_fetch_sub(&shares, 1);
    if (atomic_load(&shares) == 0)
        atomic_fetch_add(&freed, 1);
#endif
    return x;
}

int main(void)
{
    pthread_t a, b;
    pthread_create(&a, 0, drop, 0);
    pthread_create(&b, 0, drop, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    assert(freed == 1);
    return 0;
}
