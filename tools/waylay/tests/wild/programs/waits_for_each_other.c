// finds: livelock no end
// Each thread waits until the other gives up; if both have begun, neither does.
#include "wild.h"

static volatile int wants[2];

static void *tries(void *number) {
    int own = (long)number, other = 1 - own;
    wants[own] = 1;
    while (wants[other]) {}
    wants[own] = 0;
    return 0;
}

int main(void) {
    run(2, tries);
    return 0;
}
