// d = 2: the main thread returns without waiting for the other, which is in the middle of something.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_int files;

static void *moves(void *unused) {
    for (int i = 0; i < 5; i++) atomic_load(&files);
    files = 1;
    files = 2;
    return unused;
}

static void closes(void) {
    if (files == 1) abort();
}

int main(void) {
    pthread_t other;
    atexit(closes);
    pthread_create(&other, 0, moves, 0);
    pthread_detach(other);
    return 0;
}
