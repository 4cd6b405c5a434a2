/* Creates threads that end at once, without pause. */
#include <pthread.h>
#include <stdio.h>

static void *nothing(void *unused) { return unused; }

static void *creator(void *unused) {
    for (;;) {
        pthread_t thread;
        if (!pthread_create(&thread, 0, nothing, unused)) pthread_join(thread, 0);
    }
}

int main(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, creator, 0);
    puts("ready");
    fflush(stdout);
    pthread_join(threads[0], 0);
}
