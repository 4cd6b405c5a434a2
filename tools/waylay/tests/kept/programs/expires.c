// d = 3: the waiter comes first, the main thread sees it, and the wait expires between two looks.
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

static atomic_int registered;
static sem_t never;

static void *waits(void *unused) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 1;
    registered = 1;
    sem_timedwait(&never, &until);
    registered = 0;
    return unused;
}

int main(void) {
    pthread_t other;
    sem_init(&never, 0, 0);
    pthread_create(&other, 0, waits, 0);
    if (registered && !registered) abort();
    pthread_join(other, 0);
    return 0;
}
