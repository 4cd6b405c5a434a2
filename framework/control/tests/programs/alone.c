// One thread takes and gives back a lock of its own making, as often as the argument says, while another waits for it. Exits 0.
#include "check.h"
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_int lock;
static sem_t end;

static void *waits(void *unused) {
    sem_wait(&end);
    return unused;
}

int main(int argc, char **argv) {
    pthread_t thread;
    long rounds = argc > 1 ? atol(argv[1]) : 1;
    sem_init(&end, 0, 0);
    CHECK(pthread_create(&thread, 0, waits, 0) == 0);
    if (rounds < 0) lock = 1;
    for (long i = 0; i < labs(rounds); i++) {
        while (atomic_exchange(&lock, 1));
        atomic_store(&lock, 0);
    }
    sem_post(&end);
    pthread_join(thread, 0);
    return 0;
}
