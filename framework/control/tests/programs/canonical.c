// A program with a fixed address that takes addresses of library functions: their stubs are the functions' addresses, for all modules. Exits 0.
#include "check.h"
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

static double (*volatile grow)(double);
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static double total;

static void *adds(void *number) {
    double more = expm1(*(double *)number) + grow(*(double *)number);
    pthread_mutex_lock(&guard);
    total += more;
    pthread_mutex_unlock(&guard);
    return 0;
}

int main(void) {
    double numbers[2] = {1, 2};
    pthread_t threads[2];
    grow = expm1;
    for (int i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], 0, adds, &numbers[i]) == 0);
    for (int i = 0; i < 2; i++) CHECK(pthread_join(threads[i], 0) == 0);
    CHECK(fabs(total - 2 * (M_E - 1 + M_E * M_E - 1)) < 1e-9);
    return 0;
}
