/* An asymmetric lock: its owner takes it with plain stores, others revoke it with an atomic. The owner's store has to be seen
   before it looks whether somebody revokes. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

static _Atomic int held, revoked;
static int guarded;

static void *owner(void *argument) {
    atomic_store_explicit(&held, 1, memory_order_relaxed);
#ifdef FIXED
    atomic_thread_fence(memory_order_seq_cst);
#endif
    if (!atomic_load_explicit(&revoked, memory_order_acquire)) {
        guarded++;
        assert(guarded == 1);
        guarded--;
    }
    atomic_store_explicit(&held, 0, memory_order_release);
    return argument;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, owner, NULL);
    atomic_exchange(&revoked, 1);
    if (!atomic_load_explicit(&held, memory_order_acquire)) {
        guarded++;
        assert(guarded == 1);
        guarded--;
    }
    pthread_join(thread, NULL);
    return 0;
}
