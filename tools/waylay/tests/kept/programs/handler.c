// d = 2: a signal reaches a thread between two writes that belong together; its handler reads both.
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_int low, high;

static void handler(int number) {
    (void)number;
    if (low != high) abort();
}

static void *counts(void *unused) {
    for (int i = 0; i < 2; i++) {
        low++;
        high++;
    }
    return unused;
}

int main(void) {
    signal(SIGUSR1, handler);
    pthread_t other;
    pthread_create(&other, 0, counts, 0);
    pthread_kill(other, SIGUSR1);
    pthread_join(other, 0);
    return 0;
}
