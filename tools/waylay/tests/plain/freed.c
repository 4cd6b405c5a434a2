// A reader takes the record under the lock and reads it after giving the lock back; the owner takes it away under the lock
// and frees it. Nothing writes to a record once it is made: only the free conflicts with the reads.
#include <pthread.h>
#include <stdlib.h>

struct record {
    long one, other;
};

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static struct record *current;

static void check(const struct record *record) {
    if (record && record->one + record->other != 30) abort();
}

static void *reader(void *unused) {
    (void)unused;
    pthread_mutex_lock(&guard);
    struct record *record = current;
#ifdef FIXED
    check(record);
#endif
    pthread_mutex_unlock(&guard);
#ifndef FIXED
    check(record);
#endif
    return NULL;
}

static void *owner(void *unused) {
    (void)unused;
    pthread_mutex_lock(&guard);
    struct record *record = current;
    current = NULL;
    pthread_mutex_unlock(&guard);
#ifdef MOVES
    // What shrinks or grows is somewhere else afterwards, or has an end that is nobody's.
    free(realloc(record, 100000));
#else
    free(record);
#endif
    return NULL;
}

int main(void) {
    current = malloc(sizeof *current);
    current->one = 10;
    current->other = 20;
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, reader, NULL);
    pthread_create(&threads[1], NULL, owner, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}
