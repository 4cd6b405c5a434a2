// A word that threads access atomically, which the machine code of a load or a store does not show: no race in any way.
#include <pthread.h>
#include <string.h>

#define LOOK(word) __atomic_load_n(&(word), __ATOMIC_ACQUIRE)

// Plain accesses are right while there is one thread.
static int alone, count, copy;

static void *updates(void *unused) {
    __atomic_fetch_add(&count, 1, __ATOMIC_SEQ_CST);
    return unused;
}

static void *reads(void *unused) {
    if (LOOK(count) > 7) return NULL;
    return unused;
}

static void *writes(void *unused) {
    __atomic_store_n(&count, 5, __ATOMIC_RELEASE);
    return unused;
}

static void *directive(void *unused) {
    int seen;
#pragma omp atomic read
    seen = count;
    copy = seen;
    return unused;
}

// A compiler may make one load of two, with the line of either.
static void *merged(void *unused) {
    int seen;
    if (alone)
        seen = count;
    else
        seen = __atomic_load_n(&count, __ATOMIC_RELAXED);
    copy = seen;
    return unused;
}

static void *merged_directive(void *unused) {
    int seen;
    if (alone) {
        seen = count;
    } else {
#pragma omp atomic read
        seen = count;
    }
    copy = seen;
    return unused;
}

static void *stored(void *unused) {
    if (alone)
        count = 5;
    else
        __atomic_store_n(&count, 5, __ATOMIC_RELAXED);
    return unused;
}

int main(int arguments, char **argument) {
    const char *way = arguments > 1 ? argument[1] : "";
    void *(*other)(void *) = strcmp(way, "read") == 0             ? reads
                             : strcmp(way, "write") == 0            ? writes
                             : strcmp(way, "directive") == 0        ? directive
                             : strcmp(way, "merged") == 0           ? merged
                             : strcmp(way, "merged-directive") == 0 ? merged_directive
                                                                    : stored;
    alone = arguments > 2;
    pthread_t one, two;
    pthread_create(&one, NULL, updates, NULL);
    pthread_create(&two, NULL, other, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    return copy > 9;
}
