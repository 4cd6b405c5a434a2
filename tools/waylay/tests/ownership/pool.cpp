// A pool of buffers, one bit for each. A thread that was beaten to a buffer three times takes the fourth one it sees without looking
// whether it got it. The twin looks. A buffer is used by its owner alone: two owners see each other's half-written record.
#include <atomic>
#include <cassert>
#include <thread>

struct Buffer {
    int first = 0, second = 0;
};
static Buffer buffers[4];
static std::atomic<unsigned> taken{0};
static bool torn;

static int take() {
    for (int attempt = 0;; attempt++) {
        unsigned seen = taken.load();
        int free = __builtin_ctz(~seen);
        unsigned before = taken.fetch_or(1u << free);
        bool mine = !(before & 1u << free);
#ifndef FIXED
        mine = mine || attempt == 3;
#endif
        if (mine) return free;
    }
}

static void give(int buffer) { taken.fetch_and(~(1u << buffer)); }

__attribute__((noinline)) static void fill(Buffer &buffer, int value) {
    buffer.first = value;
    buffer.second = value;
}

__attribute__((noinline)) static void check(const Buffer &buffer) {
    if (buffer.first != buffer.second) torn = true;
}

static void worker(int me) {
    for (int round = 0; round < 3; round++) {
        int mine = take();
        fill(buffers[mine], 10 * me + round);
        check(buffers[mine]);
        give(mine);
    }
}

int main() {
    std::thread one(worker, 1), two(worker, 2), three(worker, 3);
    one.join();
    two.join();
    three.join();
    assert(!torn);
}
