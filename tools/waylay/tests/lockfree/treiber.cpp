// Treiber's stack over nodes that are used again. The bug: a pop compares the top only, and the same node with another
// successor passes for the old one.
#include <atomic>
#include <cassert>
#include <cstdint>
#include <thread>

struct Node {
    std::atomic<int> next{-1};
};

static Node nodes[3];
// Index in the lower half, and a count of changes in the upper one if it is kept.
static std::atomic<uint64_t> top{UINT64_MAX & 0xffffffff};

static uint64_t with(uint64_t old, int index)
{
#ifdef FIXED
    return ((old >> 32) + 1) << 32 | static_cast<uint32_t>(index);
#else
    return (old & 0) | static_cast<uint32_t>(index);
#endif
}

static void push(int index)
{
    uint64_t old = top.load();
    do
        nodes[index].next.store(static_cast<int>(old));
    while (!top.compare_exchange_weak(old, with(old, index)));
}

static int pop()
{
    uint64_t old = top.load();
    for (;;) {
        int index = static_cast<int>(old);
        if (index < 0)
            return -1;
        int next = nodes[index].next.load();
        if (top.compare_exchange_weak(old, with(old, next)))
            return index;
    }
}

int main()
{
    push(2);
    push(1);
    push(0);
    std::atomic<int> owned[3]{};
    auto take = [&] {
        int got = pop();
        if (got >= 0)
            assert(owned[got].fetch_add(1) == 0);
        return got;
    };
    std::thread slow(take);
    std::thread quick([&] {
        int a = take();
        take();
        if (a >= 0) {
            owned[a].fetch_sub(1);
            push(a);
        }
        take();
    });
    slow.join();
    quick.join();
}
