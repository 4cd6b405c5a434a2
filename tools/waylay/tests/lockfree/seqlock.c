/* A sequence lock over two words. The bug: the reader does not look at the sequence again. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

static atomic_uint sequence;
static volatile long first, second;

static void *writer(void *x)
{
    for (long i = 1; i <= 3; i++) {
        atomic_fetch_add(&sequence, 1);
        first = i;
        second = i;
        atomic_fetch_add(&sequence, 1);
    }
    return x;
}

static void *reader(void *x)
{
    for (int i = 0; i < 3; i++) {
        unsigned before;
        long a, b;
        do {
            while ((before = atomic_load(&sequence)) & 1) {
            }
            a = first;
            b = second;
#ifdef FIXED
        } while (atomic_load(&sequence) != before);
#else
        } while (0);
#endif
        assert(a == b);
    }
    return x;
}

int main(void)
{
    pthread_t w, r;
    pthread_create(&w, 0, writer, 0);
    pthread_create(&r, 0, reader, 0);
    pthread_join(w, 0);
    pthread_join(r, 0);
    return 0;
}
