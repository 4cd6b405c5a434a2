// Two threads that yield until the other is done, which neither ever is; with an argument they count under a lock meanwhile, and end.
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static volatile int done;
static int rounds, count;

static void *waits(void *unused) {
    while (!done) {
        sched_yield();
        if (!rounds) continue;
        pthread_mutex_lock(&guard);
        done = ++count >= rounds;
        pthread_mutex_unlock(&guard);
    }
    return unused;
}

int main(int argc, char **argv) {
    pthread_t threads[2];
    rounds = argc > 1 ? atoi(argv[1]) : 0;
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, waits, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return 0;
}
