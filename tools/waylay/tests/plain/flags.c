// Two threads own one bit each of a field that the compiler keeps in one byte.
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

static struct {
    unsigned ready : 1;
    unsigned urgent : 1;
} flags;
#ifdef FIXED
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#endif

static void *mark_ready(void *unused) {
#ifdef FIXED
    pthread_mutex_lock(&lock);
#endif
    flags.ready = 1;
#ifdef FIXED
    pthread_mutex_unlock(&lock);
#endif
    return unused;
}

static void *mark_urgent(void *unused) {
#ifdef FIXED
    pthread_mutex_lock(&lock);
#endif
    flags.urgent = 1;
#ifdef FIXED
    pthread_mutex_unlock(&lock);
#endif
    return unused;
}

int main(void) {
    pthread_t one, two;
    pthread_create(&one, NULL, mark_ready, NULL);
    pthread_create(&two, NULL, mark_urgent, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    assert(flags.ready && flags.urgent);
    return 0;
}
