// As freed.c, with pages that are unmapped.
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static volatile long *current;

static void *reader(void *unused) {
    (void)unused;
    pthread_mutex_lock(&guard);
    volatile long *page = current;
#ifdef FIXED
    if (page && page[0] + page[100] != 30) abort();
#endif
    pthread_mutex_unlock(&guard);
#ifndef FIXED
    if (page && page[0] + page[100] != 30) abort();
#endif
    return NULL;
}

static void *owner(void *unused) {
    (void)unused;
    pthread_mutex_lock(&guard);
    void *page = (void *)current;
    current = NULL;
    pthread_mutex_unlock(&guard);
    munmap(page, 4096);
    return NULL;
}

int main(void) {
    current = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    current[0] = 10;
    current[100] = 20;
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, reader, NULL);
    pthread_create(&threads[1], NULL, owner, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}
