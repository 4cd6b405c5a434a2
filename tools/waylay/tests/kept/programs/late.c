// d = 2, at the end of a long run: a thread counts, and only then has a moment in which what it tells is half told.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_int count, begun, done;

static void *works(void *unused) {
    for (int i = 0; i < 80; i++) count++;
    begun = 1;
    done = 1;
    return unused;
}

static void *looks(void *unused) {
    if (begun && !done) abort();
    return unused;
}

int main(void) {
    pthread_t one, other;
    pthread_create(&one, 0, works, 0);
    pthread_create(&other, 0, looks, 0);
    pthread_join(one, 0);
    pthread_join(other, 0);
    return 0;
}
