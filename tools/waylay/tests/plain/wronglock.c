// Two groups of threads guard one counter, each with a lock of its own.
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t other = PTHREAD_MUTEX_INITIALIZER;
static long counter;

static void *add(void *lock) {
    pthread_mutex_lock(lock);
    long before = counter;
    counter = before + 1;
    pthread_mutex_unlock(lock);
    return NULL;
}

int main(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
#ifdef FIXED
        (void)other;
        pthread_create(&threads[i], NULL, add, &one);
#else
        pthread_create(&threads[i], NULL, add, i == 3 ? &other : &one);
#endif
    }
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    assert(counter == 4);
    return 0;
}
