// finds: livelock computes without a step
#include "wild.h"
static volatile int never;
static void *spins(void *x) {
    while (!never) {}
    return x;
}
int main(void) {
    run(2, spins);
    return 0;
}
