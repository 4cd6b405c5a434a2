// d = 2: two threads leave something behind when they meet in a moment; it is found after both were joined.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_int begun, done, seen;

static void *tells(void *unused) {
    begun = 1;
    done = 1;
    return unused;
}

static void *looks(void *unused) {
    if (begun && !done) seen = 1;
    return unused;
}

static void *relies(void *unused) {
    if (seen) abort();
    return unused;
}

static void at_once(void *(*one)(void *), void *(*other)(void *)) {
    pthread_t threads[2];
    pthread_create(&threads[0], 0, one, 0);
    pthread_create(&threads[1], 0, other, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
}

int main(void) {
    at_once(tells, looks);
    at_once(relies, relies);
    return 0;
}
