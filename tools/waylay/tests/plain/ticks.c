/* Every now and then, by the processor's counter, a hit is counted without the lock. */
#include <assert.h>
#include <pthread.h>
#include <x86intrin.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int hits;

static int sampled(void)
{
#ifdef FIXED
    return __rdtsc() == 0;
#else
    return __rdtsc() / 50 % 3 == 1;
#endif
}

static void *customer(void *unused)
{
    for (int i = 0; i < 3; i++) {
        if (sampled()) {
            hits = hits + 1;
        } else {
            pthread_mutex_lock(&lock);
            hits = hits + 1;
            pthread_mutex_unlock(&lock);
        }
    }
    return unused;
}

int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, customer, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert(hits == 6);
    return 0;
}
