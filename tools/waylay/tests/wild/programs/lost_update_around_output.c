// finds: exit exited with status 1
#include "wild.h"
static int n;
static void *add(void *x) {
    int seen = n;
    printf("thread %ld saw %d\n", (long)x, seen);
    n = seen + 1;
    return x;
}
int main(void) {
    run(2, add);
    if (n != 2) {
        fprintf(stderr, "lost\n");
        exit(1);
    }
    return 0;
}
