/* Peterson's lock for two threads. The bug: a thread looks at the other's flag before it raises its own. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

static atomic_int flag[2], turn, inside;

static void *work(void *argument)
{
    int me = argument != 0, other = 1 - me;
    for (int i = 0; i < 2; i++) {
#ifdef FIXED
        atomic_store(&flag[me], 1);
        atomic_store(&turn, other);
        while (atomic_load(&flag[other]) && atomic_load(&turn) == other) {
        }
#else
        atomic_store(&turn, other);
        while (atomic_load(&flag[other]) && atomic_load(&turn) == other) {
        }
        atomic_store(&flag[me], 1);
#endif
        assert(atomic_fetch_add(&inside, 1) == 0);
        atomic_fetch_sub(&inside, 1);
        atomic_store(&flag[me], 0);
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
