// finds: crash SIGABRT
#include "wild.h"
static char *buffer;
static int length = 8;
static void *grows(void *x) {
    pthread_mutex_lock(&m);
    length = 4096;
    pthread_mutex_unlock(&m);
    pthread_mutex_lock(&m);
    free(buffer);
    buffer = malloc(4096);
    pthread_mutex_unlock(&m);
    return x;
}
static void *fills(void *x) {
    pthread_mutex_lock(&m);
    memset(buffer, 'A', length);
    pthread_mutex_unlock(&m);
    return x;
}
int main(void) {
    buffer = malloc(8);
    run_two(grows, fills);
    free(buffer);
    return 0;
}
