// d = 1, at the end of a run of six hundred steps: the other thread comes when all of it is over.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_int count;

static void *works(void *unused) {
    for (int i = 0; i < 600; i++) count++;
    return unused;
}

static void *comes(void *unused) {
    if (count == 600) abort();
    return unused;
}

int main(void) {
    pthread_t one, other;
    pthread_create(&one, 0, works, 0);
    pthread_create(&other, 0, comes, 0);
    pthread_join(one, 0);
    pthread_join(other, 0);
    return 0;
}
