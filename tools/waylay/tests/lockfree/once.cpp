// Double-checked initialisation. The bug: the pointer is published before what it points to is ready.
#include <atomic>
#include <cassert>
#include <mutex>
#include <thread>

struct Config {
    std::atomic<int> answer{0};
};

static std::mutex mutex;
static std::atomic<Config *> instance{nullptr};

static Config *get()
{
    Config *config = instance.load(std::memory_order_acquire);
    if (!config) {
        std::lock_guard<std::mutex> guard(mutex);
        config = instance.load(std::memory_order_relaxed);
        if (!config) {
            config = new Config;
#ifdef FIXED
            config->answer = 42;
            instance.store(config, std::memory_order_release);
#else
            instance.store(config, std::memory_order_release);
            config->answer = 42;
#endif
        }
    }
    return config;
}

int main()
{
    auto use = [] { assert(get()->answer == 42); };
    std::thread a(use), b(use);
    a.join();
    b.join();
}
