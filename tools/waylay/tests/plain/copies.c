/* A record is written by copies of the C library's, in two parts, and read by one: nothing but these accesses conflicts. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static char record[64];
/* Read at run time, so that no compiler makes moves of the copies. */
static volatile size_t length = sizeof record;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void enter(void) {
#ifdef FIXED
    pthread_mutex_lock(&lock);
#endif
}

static void leave(void) {
#ifdef FIXED
    pthread_mutex_unlock(&lock);
#endif
}

static void *write_it(void *unused) {
    char next[sizeof record];
    memset(next, 'y', length);
    enter();
    memcpy(record, next, length / 2);
    memcpy(record + length / 2, next, length / 2);
    leave();
    return unused;
}

static void *read_it(void *unused) {
    char seen[sizeof record];
    enter();
    memcpy(seen, record, length);
    leave();
    if (seen[0] != seen[length - 1]) {
        abort();
    }
    return unused;
}

int main(void) {
    pthread_t one, other;
    memset(record, 'x', length);
    pthread_create(&one, NULL, write_it, NULL);
    pthread_create(&other, NULL, read_it, NULL);
    pthread_join(one, NULL);
    pthread_join(other, NULL);
    return 0;
}
