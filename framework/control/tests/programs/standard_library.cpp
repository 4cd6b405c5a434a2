// What C++20 offers for concurrency, once each. Exits 0.
#include "check.h"
#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <future>
#include <latch>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

static std::atomic<int> destroyed;
struct Local {
    std::string text = "local";
    ~Local() { destroyed++; }
};
static thread_local Local local;
static std::mutex mutex;
static std::condition_variable condition;
static int stage;

static int &initialised_once() {
    static int value = [] {
        std::this_thread::yield();
        return 5;
    }();
    return value;
}

static void descend(int depth) {
    if (depth == 0) throw std::runtime_error("deep");
    std::string text(depth, 'x');
    std::this_thread::yield();
    descend(depth - 1);
}

static void worker(int number) {
    local.text += std::to_string(number);
    CHECK(initialised_once() == 5);
    for (int round = 0; round < 3; round++) {
        try {
            descend(5);
        } catch (const std::runtime_error &error) {
            std::this_thread::yield();
            CHECK(std::string(error.what()) == "deep");
            try {
                throw;
            } catch (std::exception &) {
                CHECK(std::uncaught_exceptions() == 0);
            }
        }
        std::ostringstream out;
        out << number << ' ' << round * 1.5;
        CHECK(out.str().size() > 2);
    }
    std::unique_lock lock(mutex);
    condition.wait(lock, [&] { return stage == number; });
    stage++;
    condition.notify_all();
}

int main() {
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++) threads.emplace_back(worker, i);
    for (auto &thread : threads) thread.join();
    CHECK(destroyed == 3 && stage == 3);

    auto failing = std::async(std::launch::async, []() -> int { throw std::logic_error("late"); });
    bool thrown = false;
    try {
        failing.get();
    } catch (std::logic_error &) {
        thrown = true;
    }
    CHECK(thrown);

    std::promise<int> promise;
    std::jthread keeper([&] { promise.set_value(3); });
    CHECK(promise.get_future().get() == 3);

    std::atomic<int> word{0};
    std::jthread answers([&] {
        word.wait(0);
        word = 2;
        word.notify_one();
    });
    word = 1;
    word.notify_one();
    word.wait(1);
    CHECK(word == 2);

    std::latch latch(3);
    std::jthread first([&] { latch.arrive_and_wait(); }), second([&] { latch.arrive_and_wait(); });
    latch.arrive_and_wait();

    {
        std::barrier barrier(2);
        auto meets = [&] {
            for (int i = 0; i < 3; i++) barrier.arrive_and_wait();
        };
        std::jthread other(meets);
        meets();
    }

    std::counting_semaphore<4> semaphore(0);
    {
        std::jthread releases([&] { semaphore.release(); });
        semaphore.acquire();
    }
    CHECK(!semaphore.try_acquire_for(5s));

    std::shared_mutex shared;
    int value = 0;
    {
        std::jthread writes([&] {
            for (int i = 0; i < 10; i++) {
                std::unique_lock lock(shared);
                value++;
            }
        });
        for (int i = 0; i < 10; i++) std::shared_lock lock(shared);
    }
    CHECK(value == 10);

    std::timed_mutex timed;
    timed.lock();
    std::thread([&] { CHECK(!timed.try_lock_for(30s)); }).join();
    timed.unlock();

    std::once_flag flag;
    int calls = 0;
    {
        auto once = [&] {
            std::call_once(flag, [&] {
                std::this_thread::yield();
                calls++;
            });
        };
        std::jthread a(once), b(once);
    }
    CHECK(calls == 1);

    {
        std::unique_lock lock(mutex);
        CHECK(condition.wait_for(lock, 1h) == std::cv_status::timeout);
    }
    {
        std::jthread polls([](std::stop_token stop) {
            while (!stop.stop_requested()) std::this_thread::sleep_for(100ms);
        });
        std::this_thread::sleep_for(10s);
    }
    return 0;
}
