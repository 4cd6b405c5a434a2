// d = 1: the wait for a condition expires before anybody signals it, and that was not thought of.
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int full;

static void *fills(void *unused) {
    pthread_mutex_lock(&guard);
    full = 1;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&guard);
    return unused;
}

int main(void) {
    pthread_t other;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 5;
    pthread_create(&other, 0, fills, 0);
    pthread_mutex_lock(&guard);
    if (!full) pthread_cond_timedwait(&changed, &guard, &until);
    if (!full) abort();
    pthread_mutex_unlock(&guard);
    pthread_join(other, 0);
    return 0;
}
