// clean
#include "wild.h"
static volatile int go;
static void *spins(void *x) {
    while (!go) {}
    return x;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, spins, 0);
    go = 1;
    pthread_join(thread, 0);
    return 0;
}
