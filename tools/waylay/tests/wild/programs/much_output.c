// clean
#include "wild.h"
static void *talks(void *x) {
    for (int i = 0; i < 1000; i++) printf("thread %ld line %d %060d\n", (long)x, i, i);
    return 0;
}
int main(void) {
    run(4, talks);
    return 0;
}
