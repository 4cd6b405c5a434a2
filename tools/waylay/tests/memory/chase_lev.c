/* Chase and Lev's deque: its owner takes from the bottom, a thief from the top. The owner's new bottom has to be seen before
   it looks at the top, or the last task is taken twice. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

static _Atomic long top, bottom;
static _Atomic int taken[2];

static void run(long task) { assert(atomic_fetch_add(&taken[task], 1) == 0); }

static void take(void) {
    long b = atomic_load_explicit(&bottom, memory_order_relaxed) - 1;
    atomic_store_explicit(&bottom, b, memory_order_relaxed);
#ifdef FIXED
    atomic_thread_fence(memory_order_seq_cst);
#endif
    long t = atomic_load_explicit(&top, memory_order_relaxed);
    if (t < b) {
        run(b);
    } else {
        if (t == b && atomic_compare_exchange_strong(&top, &t, t + 1)) run(b);
        atomic_store_explicit(&bottom, b + 1, memory_order_relaxed);
    }
}

static void *steal(void *argument) {
    for (int i = 0; i < 2; i++) {
        long t = atomic_load_explicit(&top, memory_order_acquire);
        atomic_thread_fence(memory_order_seq_cst);
        long b = atomic_load_explicit(&bottom, memory_order_acquire);
        if (t < b && atomic_compare_exchange_strong(&top, &t, t + 1)) run(t);
    }
    return argument;
}

int main(void) {
    bottom = 2;
    pthread_t thief;
    pthread_create(&thief, NULL, steal, NULL);
    take();
    pthread_join(thief, NULL);
    return 0;
}
