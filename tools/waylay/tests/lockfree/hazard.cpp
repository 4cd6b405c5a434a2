// One hazard pointer. The bug: the reader does not look again whether what it announced is still what is shared.
#include <atomic>
#include <cassert>
#include <thread>

struct Node {
    std::atomic<int> alive{1};
};

static Node nodes[2];
static std::atomic<Node *> shared{&nodes[0]}, hazard{nullptr};

int main()
{
    std::thread reader([] {
        Node *node;
#ifdef FIXED
        do {
            node = shared.load();
            hazard.store(node);
        } while (shared.load() != node);
#else
        node = shared.load();
        hazard.store(node);
#endif
        assert(node->alive.load() == 1);
        hazard.store(nullptr);
    });
    std::thread writer([] {
        Node *old = shared.exchange(&nodes[1]);
        if (hazard.load() != old)
            old->alive.store(0);
    });
    reader.join();
    writer.join();
}
