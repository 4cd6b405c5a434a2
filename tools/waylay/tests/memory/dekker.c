/* Dekker's first attempt at mutual exclusion: each says that it wants, then looks at the other. Right on a machine whose
   stores are seen at once; on x86 both may enter, because each flag may still be in its thread's store buffer. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

static _Atomic int wants[2];
static int inside;

#ifdef FIXED
#define FENCE atomic_thread_fence(memory_order_seq_cst)
#else
#define FENCE ((void)0)
#endif

static void *visit(void *argument) {
    int me = argument != NULL;
    atomic_store_explicit(&wants[me], 1, memory_order_release);
    FENCE;
    if (!atomic_load_explicit(&wants[!me], memory_order_acquire)) {
        inside++;
        assert(inside == 1);
        inside--;
    }
    atomic_store_explicit(&wants[me], 0, memory_order_release);
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], NULL, visit, i ? &wants : NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}
