// Blocks are behind slots, and a slot belongs to the thread that set its bit. A thread that was beaten to a slot three times takes
// the fourth one it sees without looking whether it got it. The twin looks. Readers read the block of their slot, without
// atomics; the third thread replaces it and frees the old one, which a reader may be in the middle of.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct block { int one, other; };
static struct block *blocks[4];
static atomic_uint taken;

static struct block *made(int value) {
    struct block *block = malloc(sizeof *block);
    block->one = value;
    block->other = -value;
    return block;
}

static int take(void) {
    for (int attempt = 0;; attempt++) {
        unsigned seen = atomic_load(&taken);
        int slot = __builtin_ctz(~seen);
        int mine = !(atomic_fetch_or(&taken, 1u << slot) & 1u << slot);
#ifndef FIXED
        mine |= attempt == 3;
#endif
        if (mine) return slot;
    }
}

static void give(int slot) { atomic_fetch_and(&taken, ~(1u << slot)); }

__attribute__((noinline)) static int sum(const struct block *block) {
    return *(const volatile int *)&block->one + *(const volatile int *)&block->other;
}

static void *reader(void *x) {
    for (int round = 0; round < 3; round++) {
        int slot = take();
        assert(sum(blocks[slot]) == 0);
        give(slot);
    }
    return x;
}

static void *writer(void *x) {
    for (int round = 1; round < 4; round++) {
        int slot = take();
        struct block *old = blocks[slot];
        blocks[slot] = made(round);
        free(old);
        give(slot);
    }
    return x;
}

int main(void) {
    for (int i = 0; i < 4; i++) blocks[i] = made(i);
    pthread_t threads[3];
    pthread_create(&threads[0], 0, reader, 0);
    pthread_create(&threads[1], 0, reader, 0);
    pthread_create(&threads[2], 0, writer, 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    return 0;
}
