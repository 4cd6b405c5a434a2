// depth 1: use < set
// The thread is started before what it uses is there.
#include <pthread.h>
#include <stdlib.h>
static int *volatile config;
static int value = 7;
static void *work(void *unused) {
    int seen = *config; // @use
    return seen == 7 ? unused : 0;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, work, 0);
    config = &value; // @set
    pthread_join(thread, 0);
    return 0;
}
