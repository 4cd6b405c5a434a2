// Two threads that yield as often as the argument says.
#include "check.h"
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

static void *yields(void *count) {
    for (long i = 0; i < (long)count; i++) sched_yield();
    return 0;
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], 0, yields, (void *)atol(argv[1])) == 0);
    for (int i = 0; i < 2; i++) CHECK(pthread_join(threads[i], 0) == 0);
    return 0;
}
