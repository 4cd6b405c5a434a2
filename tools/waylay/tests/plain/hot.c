/* Two threads that come by one place so often that not all of it is looked at, or can be a step. */
#include <pthread.h>
#include <stdio.h>

static volatile long hot;

static void *count_up(void *unused) {
    for (int i = 0; i < 40000; i++) {
        hot = hot + 1;
    }
    return unused;
}

int main(void) {
    pthread_t one, other;
    pthread_create(&one, NULL, count_up, NULL);
    pthread_create(&other, NULL, count_up, NULL);
    pthread_join(one, NULL);
    pthread_join(other, NULL);
    return 0;
}
