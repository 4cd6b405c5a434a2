// A stack of free nodes without locks. A node that was taken and put back in between looks as if nothing had happened (ABA), and
// then a node that somebody owns is on the stack again. The twin counts how often the top was changed.
// Nodes are used by their owner alone, without atomics: two owners lose an increment.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

enum { NODES = 3, NONE = 0xff };
static struct { _Atomic uint32_t next; int uses; } nodes[NODES];
static _Atomic uint32_t top = 0; // the index below, and above it how often it was changed
static atomic_int used;

#ifdef FIXED
#define CHANGED(old) (((old) & ~0xffu) + 0x100)
#else
#define CHANGED(old) 0
#endif

static uint32_t pop(void) {
    uint32_t old = atomic_load(&top);
    for (;;) {
        uint32_t first = old & 0xff;
        if (first == NONE) return NONE;
        uint32_t next = atomic_load(&nodes[first].next);
        if (atomic_compare_exchange_strong(&top, &old, CHANGED(old) | next)) return first;
    }
}

static void push(uint32_t node) {
    uint32_t old = atomic_load(&top);
    do atomic_store(&nodes[node].next, old & 0xff);
    while (!atomic_compare_exchange_strong(&top, &old, CHANGED(old) | node));
}

static void use(uint32_t node) {
    if (node == NONE) return;
    nodes[node].uses++;
    atomic_fetch_add(&used, 1);
}

static void *worker(void *x) {
    for (int round = 0; round < 2; round++) {
        uint32_t one = pop(), other = pop();
        use(one);
        if (one != NONE) push(one);
        use(other);
        if (other != NONE) push(other);
    }
    return x;
}

int main(void) {
    for (uint32_t i = 0; i < NODES; i++) nodes[i].next = i + 1 < NODES ? i + 1 : NONE;
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, worker, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    int sum = 0;
    for (int i = 0; i < NODES; i++) sum += nodes[i].uses;
    assert(sum == used);
    return 0;
}
