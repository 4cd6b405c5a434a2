// Fails when an update is lost in every one of PAIRS pairs of threads, one after the other: the more pairs, the rarer.
#include <pthread.h>
#include <stdlib.h>

static volatile int value[PAIRS];
static int lost;

#ifdef CHANGE
__attribute__((used)) static int unrelated(int number) { return number * CHANGE + 7; }
#endif

static void *add(void *place) {
    int seen = value[(long)place];
    value[(long)place] = seen + 1;
    return 0;
}

int main(void) {
    for (long i = 0; i < PAIRS; i++) {
        pthread_t threads[2];
        for (int k = 0; k < 2; k++) pthread_create(&threads[k], 0, add, (void *)i);
        for (int k = 0; k < 2; k++) pthread_join(threads[k], 0);
        lost += value[i] != 2;
    }
    if (lost == PAIRS) abort();
}
