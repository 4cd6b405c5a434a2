// finds: crash SIGSEGV
#include "wild.h"
static int deeper(int n) {
    volatile char frame[4096];
    frame[0] = n;
    return n ? deeper(n - 1) + frame[0] : 0;
}
static void *descends(void *x) {
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    return (void *)(long)deeper(10000000);
}
int main(void) {
    run(1, descends);
    return 0;
}
