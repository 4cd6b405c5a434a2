// clean
#include "wild.h"
static void *serves(void *x) {
    for (;;) {
        pthread_mutex_lock(&m);
        pthread_cond_wait(&changed, &m);
        pthread_mutex_unlock(&m);
    }
    return x;
}
static void *asks(void *x) {
    pthread_mutex_lock(&m);
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&m);
    return x;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, serves, 0);
    pthread_detach(thread);
    run(1, asks);
    return 0;
}
