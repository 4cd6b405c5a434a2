// clean
#include "wild.h"
static int n;
static void *adds(void *x) {
    pthread_mutex_lock(&m);
    n++;
    pthread_mutex_unlock(&m);
    return x;
}
int main(void) {
    static pthread_t threads[1500];
    for (int i = 0; i < 1500; i++) assert(pthread_create(&threads[i], 0, adds, 0) == 0);
    for (int i = 0; i < 1500; i++) pthread_join(threads[i], 0);
    assert(n == 1500);
    return 0;
}
