// Two threads push to and pop from one queue until a third says that it is enough. Exits 0.
#include "check.h"
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

static std::mutex guard;
static std::condition_variable there;
static std::deque<int> queue;
static std::atomic<bool> enough{false};

int main() {
    std::thread pushes([] {
        for (int i = 0; !enough; i++) {
            std::lock_guard<std::mutex> held(guard);
            queue.push_back(i);
            there.notify_one();
        }
        std::lock_guard<std::mutex> held(guard);
        queue.push_back(-1);
        there.notify_one();
    });
    std::thread pops([] {
        for (int last = 0; last != -1;) {
            std::unique_lock<std::mutex> held(guard);
            there.wait(held, [] { return !queue.empty(); });
            last = queue.front();
            queue.pop_front();
        }
    });
    std::thread ends([] { enough = true; });
    pushes.join();
    pops.join();
    ends.join();
}
