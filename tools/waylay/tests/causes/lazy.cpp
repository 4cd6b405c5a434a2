// depth 2: look < make, look < make
// Two threads find that nobody made the object yet, and both make it.
#include <atomic>
#include <cassert>
#include <thread>
struct Pool {
    int size = 4;
};
static std::atomic<Pool *> pool;
static std::atomic<int> made;
static void use() {
    if (pool.load() == nullptr) { // @look
        Pool *fresh = new Pool;
        made.fetch_add(1);
        pool.store(fresh); // @make
    }
}
int main() {
    std::thread one(use), other(use);
    one.join();
    other.join();
    assert(made.load() == 1);
}
