// depth 2: check < set, signal < wait
// The flag is set without the lock: between the look at it and the wait, where the signal is lost.
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static volatile int flag;
static void *waiter(void *unused) {
    pthread_mutex_lock(&lock);
    while (!flag) // @check
        pthread_cond_wait(&ready, &lock); // @wait
    pthread_mutex_unlock(&lock);
    return unused;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, waiter, 0);
    flag = 1; // @set
    pthread_cond_signal(&ready); // @signal
    pthread_join(thread, 0);
    return 0;
}
