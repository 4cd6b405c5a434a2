/* Two threads that lose an update, by plain accesses, by atomics, by volatile accesses, or never. */
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static int plain;
static atomic_int atom;
static volatile int wild;
static const char *mode;

static void *work(void *x)
{
    if (!strcmp(mode, "plain")) {
        plain++;
    } else if (!strcmp(mode, "atomic")) {
        int v = atomic_load(&atom);
        atomic_store(&atom, v + 1);
    } else if (!strcmp(mode, "volatile")) {
        wild = wild + 1;
    } else if (!strcmp(mode, "spin")) {
        /* The thread that comes second is waited for, by a loop that makes no call. */
        atomic_fetch_add(&atom, 1);
        while (atomic_load(&atom) < 2) {
        }
        atomic_store(&atom, 2);
    } else {
        atomic_fetch_add(&atom, 1);
    }
    return x;
}

int main(int argc, char **argv)
{
    pthread_t a, b;
    mode = argc > 1 ? argv[1] : "good";
    pthread_create(&a, 0, work, 0);
    pthread_create(&b, 0, work, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return plain + wild + atomic_load(&atom) == 2 ? 0 : 7;
}
