// clean
#include "wild.h"
static int done;
static void *finishes(void *x) {
    sleep(1);
    pthread_mutex_lock(&m);
    done = 1;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&m);
    return x;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, finishes, 0);
    pthread_mutex_lock(&m);
    while (!done) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 10000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_sec++;
            until.tv_nsec -= 1000000000;
        }
        pthread_cond_timedwait(&changed, &m, &until);
    }
    pthread_mutex_unlock(&m);
    pthread_join(thread, 0);
    return 0;
}
