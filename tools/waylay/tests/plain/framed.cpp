// A count in the frame of main, which adds to it at its place on the stack; a thread that has its address loses an update.
#include <atomic>
#include <cstdlib>
#include <thread>

int main() {
    std::atomic<int> count{0};
    std::thread other([&] {
#ifdef FIXED
        count.fetch_add(1);
#else
        int seen = count.load(std::memory_order_relaxed);
        count.store(seen + 1, std::memory_order_relaxed);
#endif
    });
    count.fetch_add(1);
    other.join();
    if (count.load() != 2) abort();
}
