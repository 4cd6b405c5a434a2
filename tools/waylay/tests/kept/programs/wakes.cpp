// d = 2: the condition is looked at under the lock, but changed and told without it: the waiter sleeps for ever.
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

static std::mutex guard;
static std::condition_variable changed;
static std::atomic<bool> ready;

int main() {
    std::thread waits([] {
        std::unique_lock<std::mutex> lock(guard);
        while (!ready) changed.wait(lock);
    });
    std::thread tells([] {
        ready = true;
        changed.notify_one();
    });
    waits.join();
    tells.join();
}
