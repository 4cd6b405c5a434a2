// Order violation of depth 1: the reader must not come before the writer. Exits 1 when it does.
#include <pthread.h>

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static int initialised, bug, counter;

static void fill(void) {
    for (int i = 0; i < 5; i++) {
        pthread_mutex_lock(&other);
        counter++;
        pthread_mutex_unlock(&other);
    }
}

static void *writer(void *unused) {
    fill();
    pthread_mutex_lock(&guard);
    initialised = 1;
    pthread_mutex_unlock(&guard);
    fill();
    return unused;
}

static void *reader(void *unused) {
    fill();
    pthread_mutex_lock(&guard);
    if (!initialised) bug = 1;
    pthread_mutex_unlock(&guard);
    fill();
    return unused;
}

int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, writer, 0);
    pthread_create(&b, 0, reader, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return bug;
}
