// Setters write two variables without a lock; a checker must see both or neither.
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int a, b;
#ifdef FIXED
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#define LOCK() pthread_mutex_lock(&lock)
#define UNLOCK() pthread_mutex_unlock(&lock)
#else
#define LOCK() ((void)0)
#define UNLOCK() ((void)0)
#endif

static void *setter(void *unused) {
    (void)unused;
    LOCK();
    a = 1;
    b = -1;
    UNLOCK();
    return NULL;
}

static void *checker(void *unused) {
    (void)unused;
    LOCK();
    int sound = (a == 0 && b == 0) || (a == 1 && b == -1);
    UNLOCK();
    if (!sound) {
        fprintf(stderr, "half set\n");
        abort();
    }
    return NULL;
}

int main(int argc, char **argv) {
    int setters = argc > 1 ? atoi(argv[1]) : 4;
    pthread_t threads[64];
    for (int i = 0; i < setters; i++) pthread_create(&threads[i], NULL, setter, NULL);
    pthread_create(&threads[setters], NULL, checker, NULL);
    for (int i = 0; i <= setters; i++) pthread_join(threads[i], NULL);
    return 0;
}
