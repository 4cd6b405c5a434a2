// finds: assert Assertion `n == 2' failed
#include "wild.h"
static int n;
static void *add(void *x) {
    int seen = n;
    usleep(rand() % 100);
    n = seen + 1;
    return x;
}
int main(void) {
    srand(time(0));
    run(2, add);
    printf("%d\n", n);
    assert(n == 2);
    return 0;
}
