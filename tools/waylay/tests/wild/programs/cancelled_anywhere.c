// clean
#include "wild.h"
static void *sleeps(void *x) {
    for (;;) sleep(100);
    return x;
}
static void *computes(void *x) {
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, 0);
    for (volatile long i = 0;; i++) {}
    return x;
}
int main(void) {
    pthread_t a, b;
    void *result;
    pthread_create(&a, 0, sleeps, 0);
    pthread_create(&b, 0, computes, 0);
    usleep(10);
    pthread_cancel(a);
    pthread_cancel(b);
    pthread_join(a, &result);
    assert(result == PTHREAD_CANCELED);
    pthread_join(b, &result);
    assert(result == PTHREAD_CANCELED);
    return 0;
}
