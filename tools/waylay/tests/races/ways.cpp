// The same in C++: what the language's own library offers.
#include <atomic>
#include <barrier>
#include <condition_variable>
#include <cstring>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

static bool broken;
static long shared, copy_of;

template <class One, class Other> static void both(One one, Other other) {
    std::thread first(one), second(other);
    first.join();
    second.join();
}

static void mutex() {
    std::mutex lock;
    auto add = [&] {
        std::unique_lock held(lock, std::defer_lock);
        if (!broken) held.lock();
        shared++;
    };
    both(add, add);
}

static void shared_mutex() {
    std::shared_mutex lock;
    both(
        [&] {
            std::unique_lock held(lock, std::defer_lock);
            if (!broken) held.lock();
            shared = 1;
        },
        [&] {
            std::shared_lock held(lock);
            copy_of = shared;
        });
}

static void condition() {
    std::mutex lock;
    std::condition_variable changed;
    bool ready = false;
    both(
        [&] {
            shared = 5;
            std::lock_guard held(lock);
            ready = true;
            changed.notify_one();
        },
        [&] {
            std::unique_lock held(lock);
            if (!broken) changed.wait(held, [&] { return ready; });
            held.unlock();
            copy_of = shared;
        });
}

struct Expensive {
    long value;
    Expensive() : value(7) {}
};

static Expensive &instance() {
    static Expensive only;
    return only;
}

static void local_static() {
    auto use = [] {
        copy_of = 0;
        return instance().value;
    };
    if (broken) return both(use, use);
    both([] { return instance().value; }, [] { return instance().value; });
}

static void call_once() {
    std::once_flag flag;
    auto use = [&] {
        if (broken) shared = 5;
        else std::call_once(flag, [] { shared = 5; });
        return shared;
    };
    both(use, use);
}

static void shared_pointer() {
    auto text = std::make_shared<std::string>("some text that is too long for the small buffer");
    auto one = text;
    std::thread first([one = std::move(one)]() mutable {
        copy_of = broken ? 1 : 0;
        one.reset();
    });
    if (broken) copy_of = 2;
    text.reset();
    first.join();
}

static void promise() {
    std::promise<int> promise;
    auto future = promise.get_future();
    both(
        [&] {
            shared = 5;
            promise.set_value(1);
        },
        [&] {
            if (!broken) future.wait();
            copy_of = shared;
        });
}

static void ring() {
    static long slots[4];
    static std::atomic<unsigned> head{0}, tail{0};
    both(
        [] {
            for (long value = 1; value <= 3; value++) {
                unsigned at = head.load(std::memory_order_relaxed);
                slots[at % 4] = value;
                head.store(at + 1, std::memory_order_release);
                if (broken) slots[at % 4] = value;
            }
        },
        [] {
            for (int tries = 0; tries < 6; tries++) {
                unsigned at = tail.load(std::memory_order_relaxed);
                if (at == head.load(std::memory_order_acquire)) continue;
                copy_of += slots[at % 4];
                tail.store(at + 1, std::memory_order_release);
            }
        });
}

static void count_down() {
    std::latch latch(1);
    both(
        [&] {
            shared = 5;
            latch.count_down();
        },
        [&] {
            if (!broken) latch.wait();
            copy_of = shared;
        });
}

static void permits() {
    std::counting_semaphore<4> semaphore(0);
    both(
        [&] {
            shared = 5;
            semaphore.release();
        },
        [&] {
            if (!broken) semaphore.acquire();
            copy_of = shared;
        });
}

// Who lets go of it last deletes it.
static void owners() {
    auto owned = std::make_shared<std::atomic<long>>(7);
    auto look = [](std::shared_ptr<std::atomic<long>> mine) {
        auto *plain = mine.get();
        plain->load(std::memory_order_relaxed);
        mine.reset();
        if (broken) plain->load(std::memory_order_relaxed);
    };
    std::thread first(look, owned), second(look, std::move(owned));
    first.join();
    second.join();
}

int main(int count, char **arguments) {
    broken = count > 2;
    struct {
        const char *name;
        void (*run)();
    } ways[] = {{"mutex", mutex},           {"shared-mutex", shared_mutex},     {"condition", condition},
                {"static", local_static},   {"call-once", call_once},           {"shared-pointer", shared_pointer},
                {"promise", promise},       {"ring", ring},                     {"latch", count_down},
                {"semaphore", permits},     {"owners", owners}};
    for (auto &way : ways) {
        if (std::strcmp(way.name, arguments[1]) == 0) {
            way.run();
            return 0;
        }
    }
    return 2;
}
