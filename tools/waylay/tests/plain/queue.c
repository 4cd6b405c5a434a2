// A ring of jobs: putting and taking is locked, and the test whether there are any is not.
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

static int ring[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
static unsigned head, tail;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void put(int job) {
    pthread_mutex_lock(&lock);
    ring[tail++ % 8] = job;
    pthread_mutex_unlock(&lock);
}

static int take(void) {
#ifdef FIXED
    pthread_mutex_lock(&lock);
    int job = head == tail ? 0 : ring[head++ % 8];
    pthread_mutex_unlock(&lock);
    return job;
#else
    if (head == tail) return 0;
    pthread_mutex_lock(&lock);
    int job = ring[head % 8];
    ring[head++ % 8] = -1;
    pthread_mutex_unlock(&lock);
    return job;
#endif
}

static void *worker(void *sum) {
    for (int i = 0; i < 3; i++) *(int *)sum += take();
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    int sums[2] = {0, 0};
    put(1);
    put(2);
    put(3);
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, worker, &sums[i]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    assert(sums[0] + sums[1] == 6);
    return 0;
}
