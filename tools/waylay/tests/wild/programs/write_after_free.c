// finds: crash use after free: byte 24 of 72 bytes was written after thread
#include "wild.h"
static int *block;
static void *writes(void *x) {
    pthread_mutex_lock(&m);
    int *mine = block;
    pthread_mutex_unlock(&m);
    if (mine) mine[6] = 3;
    return x;
}
static void *frees(void *x) {
    pthread_mutex_lock(&m);
    int *mine = block;
    block = 0;
    pthread_mutex_unlock(&m);
    free(mine);
    return x;
}
int main(void) {
    block = malloc(64);
    run_two(writes, frees);
    return 0;
}
