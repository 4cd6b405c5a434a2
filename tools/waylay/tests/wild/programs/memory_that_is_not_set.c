// clean
#include "wild.h"
// Wrong, but fresh memory is zero; and not what is looked for.
static struct {
    int count;
    pthread_mutex_t lock;
} *shared;
static void *adds(void *x) {
    pthread_mutex_lock(&shared->lock);
    shared->count++;
    pthread_mutex_unlock(&shared->lock);
    return x;
}
int main(void) {
    shared = malloc(sizeof *shared);
    pthread_mutex_init(&shared->lock, 0);
    run(2, adds);
    assert(shared->count == 2);
    return 0;
}
