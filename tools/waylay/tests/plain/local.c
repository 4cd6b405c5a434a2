// What is shared lies in a frame of main, which waits for it without a lock.
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

struct progress {
    int parts;
    volatile int done;
};

static void *work(void *at) {
    struct progress *progress = at;
#ifdef FIXED
    progress->parts = 7;
    progress->done = 1;
#else
    progress->done = 1;
    progress->parts = 7;
#endif
    return NULL;
}

int main(void) {
    struct progress progress = {0, 0};
    pthread_t thread;
    pthread_create(&thread, NULL, work, &progress);
    while (!progress.done) {
    }
    int parts = progress.parts;
    assert(parts == 7);
    pthread_join(thread, NULL);
    return 0;
}
