// finds: deadlock none can run
#include "wild.h"
static pthread_t threads[2];
static pthread_barrier_t all;
static void *joins(void *other) {
    pthread_barrier_wait(&all);
    pthread_join(threads[(long)other], 0);
    return 0;
}
int main(void) {
    pthread_barrier_init(&all, 0, 3);
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], 0, joins, (void *)!i);
    pthread_barrier_wait(&all);
    pause();
    return 0;
}
