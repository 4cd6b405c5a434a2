// finds: assert Assertion `*(int *)x < 3' failed
#include "wild.h"
static void *reads(void *x) {
    usleep(1);
    assert(*(int *)x < 3);
    return 0;
}
int main(void) {
    pthread_t threads[3];
    int i;
    for (i = 0; i < 3; i++) pthread_create(&threads[i], 0, reads, &i);
    for (int j = 0; j < 3; j++) pthread_join(threads[j], 0);
    return 0;
}
