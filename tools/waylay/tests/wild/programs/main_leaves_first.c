// clean
#include "wild.h"
static void *naps(void *x) {
    for (int i = 0; i < 5; i++) usleep(1000);
    puts("done");
    return x;
}
int main(void) {
    pthread_t thread;
    for (int i = 0; i < 3; i++) pthread_create(&thread, 0, naps, 0);
    pthread_exit(0);
}
