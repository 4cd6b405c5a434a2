// A message is published by an atomic flag: released too early, the reader sees half of it.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static struct {
    int length;
    char text[12];
} message;
static atomic_int ready;

static void *writer(void *unused) {
#ifndef FIXED
    atomic_store_explicit(&ready, 1, memory_order_release);
#endif
    message.length = 3;
    message.text[0] = 'y';
    message.text[1] = 'e';
    message.text[2] = 's';
#ifdef FIXED
    atomic_store_explicit(&ready, 1, memory_order_release);
#endif
    return unused;
}

static void *reader(void *unused) {
    if (atomic_load_explicit(&ready, memory_order_acquire)) {
        assert(message.length == 3);
        assert(message.text[2] == 's');
    }
    return unused;
}

int main(void) {
    pthread_t one, two;
    pthread_create(&one, NULL, writer, NULL);
    pthread_create(&two, NULL, reader, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    return 0;
}
