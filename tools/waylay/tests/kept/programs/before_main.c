// A thread that exists before main runs beside the schedule, so nothing is promised, although two others are scheduled.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_int begun, done, over;
static pthread_t early;

static void *beside(void *unused) {
    while (!over) usleep(100);
    return unused;
}

__attribute__((constructor)) static void start(void) { pthread_create(&early, 0, beside, 0); }

static void *tells(void *unused) {
    begun = 1;
    done = 1;
    return unused;
}

static void *looks(void *unused) {
    if (begun && !done) abort();
    return unused;
}

int main(void) {
    pthread_t one, other;
    pthread_create(&one, 0, tells, 0);
    pthread_create(&other, 0, looks, 0);
    pthread_join(one, 0);
    pthread_join(other, 0);
    over = 1;
    return 0;
}
