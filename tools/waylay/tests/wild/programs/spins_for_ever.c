// finds: livelock no end
// Once the loop is learned, its turns are steps: the limit of steps or of time ends it, whichever this machine reaches first.
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
