// depth 1: signal < wait
// The signal comes when nobody waits yet, and the waiter does not look whether it came.
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static void *waiter(void *unused) {
    pthread_mutex_lock(&lock);
    pthread_cond_wait(&ready, &lock); // @wait
    pthread_mutex_unlock(&lock);
    return unused;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, waiter, 0);
    pthread_cond_signal(&ready); // @signal
    pthread_join(thread, 0);
    return 0;
}
