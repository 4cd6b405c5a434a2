// Many threads: churn COUNT AT_ONCE. All take a turn at one counter. Exits 0.
#include "check.h"
#include <pthread.h>
#include <sched.h>

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static int counter;

static void *adds(void *unused) {
    pthread_mutex_lock(&guard);
    int seen = counter;
    sched_yield();
    counter = seen + 1;
    pthread_mutex_unlock(&guard);
    return unused;
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    int count = atoi(argv[1]), at_once = atoi(argv[2]);
    pthread_t *threads = calloc(at_once, sizeof *threads);
    for (int begun = 0; begun < count; begun += at_once) {
        for (int i = 0; i < at_once; i++) CHECK(pthread_create(&threads[i], 0, adds, 0) == 0);
        for (int i = 0; i < at_once; i++) CHECK(pthread_join(threads[i], 0) == 0);
    }
    CHECK(counter == count);
    return 0;
}
