/* Two threads share memory under two addresses, as queues that map their ring twice do: nothing but accesses by different
   addresses conflicts. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static int *front, *back;
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

static void *put(void *unused) {
    enter();
    front[0] = 1;
    __asm__ volatile("" ::: "memory");
    front[1] = 1;
    leave();
    return unused;
}

static void *take(void *unused) {
    enter();
    int second = back[1];
    __asm__ volatile("" ::: "memory");
    int first = back[0];
    leave();
    if (first != second) abort();
    return unused;
}

int main(void) {
    int file = memfd_create("ring", 0);
    if (file < 0 || ftruncate(file, 4096)) return 9;
    front = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    back = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (front == MAP_FAILED || back == MAP_FAILED) return 9;
    pthread_t one, other;
    pthread_create(&one, NULL, put, NULL);
    pthread_create(&other, NULL, take, NULL);
    pthread_join(one, NULL);
    pthread_join(other, NULL);
    return 0;
}
