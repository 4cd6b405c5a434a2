// finds: crash double free of
#include "wild.h"
static char *shared;
static void *frees(void *x) {
    if (shared) {
        free(shared);
        shared = 0;
    }
    return x;
}
int main(void) {
    shared = malloc(64);
    run(2, frees);
    return 0;
}
