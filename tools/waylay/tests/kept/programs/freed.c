// d = 2: a record is freed between the moment when it is found and the moment when it is read. Nothing else conflicts.
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static long *current;

static void *reads(void *unused) {
    pthread_mutex_lock(&guard);
    long *record = current;
    pthread_mutex_unlock(&guard);
    if (record && record[0] + record[1] != 30) abort();
    return unused;
}

static void *frees(void *unused) {
    pthread_mutex_lock(&guard);
    long *record = current;
    current = 0;
    pthread_mutex_unlock(&guard);
    free(record);
    return unused;
}

int main(void) {
    current = malloc(2 * sizeof *current);
    current[0] = 10;
    current[1] = 20;
    pthread_t one, other;
    pthread_create(&one, 0, reads, 0);
    pthread_create(&other, 0, frees, 0);
    pthread_join(one, 0);
    pthread_join(other, 0);
    return 0;
}
