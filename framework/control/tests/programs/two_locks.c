// Two locks in opposite order: deadlock of depth 2, or exit status 0. With an argument the order is the same in both
// threads, and it never deadlocks.
#include <pthread.h>

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static int counter, same_order;

void *one(void *unused) {
    pthread_mutex_lock(&first);
    pthread_mutex_lock(&second);
    counter++;
    pthread_mutex_unlock(&second);
    pthread_mutex_unlock(&first);
    return unused;
}

void *two(void *unused) {
    pthread_mutex_lock(same_order ? &first : &second);
    pthread_mutex_lock(same_order ? &second : &first);
    counter++;
    pthread_mutex_unlock(&first);
    pthread_mutex_unlock(&second);
    return unused;
}

int main(int argc, char **argv) {
    same_order = argc > 1;
    pthread_t a, b;
    pthread_create(&a, 0, one, 0);
    pthread_create(&b, 0, two, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return counter != 2;
}
