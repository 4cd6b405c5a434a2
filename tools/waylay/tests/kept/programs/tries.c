// d = 3: a moment of two steps, behind a thread that waits by counting its attempts, which looks like work.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_int ready, attempts, begun, done;

static void *waits(void *unused) {
    while (!ready) attempts++;
    begun = 1;
    done = 1;
    return unused;
}

static void *prepares(void *unused) {
    ready = 1;
    return unused;
}

static void *looks(void *unused) {
    if (begun && !done) abort();
    return unused;
}

int main(void) {
    void *(*bodies[])(void *) = {waits, prepares, looks};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, bodies[i], 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    return 0;
}
