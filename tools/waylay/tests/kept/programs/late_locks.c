// d = 2, behind twenty rounds with a lock: the last round looks under the lock and acts after giving it back.
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static int left = 1;

static void *takes(void *unused) {
    for (int i = 0; i < 12; i++) {
        pthread_mutex_lock(&guard);
        pthread_mutex_unlock(&guard);
    }
    pthread_mutex_lock(&guard);
    int there = left > 0;
    pthread_mutex_unlock(&guard);
    if (there) {
        pthread_mutex_lock(&guard);
        if (left-- < 1) abort();
        pthread_mutex_unlock(&guard);
    }
    return unused;
}

int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, takes, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return 0;
}
