// Data that a flag hands over, as much as is asked for. FIXED: the flag is set behind the data, as it should be.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static int data[1000], count;
static atomic_int ready;

static void *writer(void *unused) {
#ifndef FIXED
    atomic_store_explicit(&ready, 1, memory_order_release);
#endif
    for (int i = 0; i < count; i++) data[i] = i + 1;
#ifdef FIXED
    atomic_store_explicit(&ready, 1, memory_order_release);
#endif
    return unused;
}

static void *reader(void *unused) {
    while (!atomic_load_explicit(&ready, memory_order_acquire)) {
    }
    for (int i = 0; i < count; i++) assert(data[i] == i + 1);
    return unused;
}

int main(int arguments, char **argument) {
    count = arguments > 1 ? atoi(argument[1]) : 10;
    pthread_t one, two;
    pthread_create(&one, NULL, writer, NULL);
    pthread_create(&two, NULL, reader, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    return 0;
}
