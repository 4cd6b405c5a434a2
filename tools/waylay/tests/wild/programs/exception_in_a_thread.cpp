// finds: exception terminate called after throwing an instance of 'std::runtime_error'
#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>
static std::atomic<int> ready;
int main() {
    auto sets = std::async(std::launch::async, [] {
        std::this_thread::yield();
        ready = 1;
    });
    std::thread looks([] {
        std::this_thread::yield();
        if (!ready) throw std::runtime_error("early");
    });
    sets.get();
    looks.join();
}
