/* Dekker's lock for two threads. The bug: a thread that gave way does not raise its flag again before it goes on. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

static atomic_int wants[2], turn, inside;

static void *work(void *argument)
{
    int me = argument != 0, other = 1 - me;
    for (int i = 0; i < 2; i++) {
        atomic_store(&wants[me], 1);
        while (atomic_load(&wants[other])) {
            if (atomic_load(&turn) != me) {
                atomic_store(&wants[me], 0);
                while (atomic_load(&turn) != me) {
                }
#ifdef FIXED
                atomic_store(&wants[me], 1);
#endif
            }
        }
        assert(atomic_fetch_add(&inside, 1) == 0);
        atomic_fetch_sub(&inside, 1);
        atomic_store(&turn, other);
        atomic_store(&wants[me], 0);
    }
    return 0;
}

int main(void)
{
    pthread_t other;
    pthread_create(&other, 0, work, (void *)1);
    work(0);
    pthread_join(other, 0);
    return 0;
}
