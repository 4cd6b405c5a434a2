// A hazard pointer that is announced too late: the announcement has to be seen before the reader looks whether the node is
// still there, or the node is freed under it.
#include <atomic>
#include <cassert>
#include <thread>

struct Node {
    int value = 42;
    bool freed = false;
};

static Node node;
static std::atomic<Node *> shared{&node}, hazard{nullptr};
#ifdef FIXED
static constexpr auto announced = std::memory_order_seq_cst;
#else
static constexpr auto announced = std::memory_order_release;
#endif

static void reader() {
    Node *seen = shared.load(std::memory_order_acquire);
    if (!seen) return;
    hazard.store(seen, announced);
    if (shared.load(std::memory_order_acquire) == seen) {
        assert(!seen->freed);
        assert(seen->value == 42);
    }
    hazard.store(nullptr, std::memory_order_release);
}

int main() {
    std::thread other(reader);
    Node *old = shared.exchange(nullptr);
    if (hazard.load(std::memory_order_acquire) != old) old->freed = true;
    other.join();
}
