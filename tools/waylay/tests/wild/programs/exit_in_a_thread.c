// finds: exit exited with status 255
#include "wild.h"
static int flag;
static void *sets(void *x) {
    usleep(1);
    flag = 1;
    return x;
}
static void *looks(void *x) {
    usleep(1);
    if (!flag) exit(-1);
    return x;
}
int main(void) {
    run_two(sets, looks);
    return 0;
}
