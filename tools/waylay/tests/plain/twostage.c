// A writer publishes in two stages, each under its own lock; a reader that comes in between sees the first alone.
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static int value, copy;

static void *writer(void *unused) {
    (void)unused;
    pthread_mutex_lock(&first);
    value = 1;
#ifndef FIXED
    pthread_mutex_unlock(&first);
#endif
    pthread_mutex_lock(&second);
    copy = value + 1;
    pthread_mutex_unlock(&second);
#ifdef FIXED
    pthread_mutex_unlock(&first);
#endif
    return NULL;
}

static void *reader(void *unused) {
    (void)unused;
    pthread_mutex_lock(&first);
    int seen = value;
#ifndef FIXED
    pthread_mutex_unlock(&first);
#endif
    if (seen != 0) {
        pthread_mutex_lock(&second);
        int next = copy;
        pthread_mutex_unlock(&second);
        assert(next == seen + 1);
    }
#ifdef FIXED
    pthread_mutex_unlock(&first);
#endif
    return NULL;
}

int main(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, i % 2 ? reader : writer, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    return 0;
}
