// Healthy tests of libstdc++'s concurrency, in C++. They find nothing unless it has a bug.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <future>
#include <mutex>
#include <numeric>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "waylay.hpp"

namespace {

// Values and exceptions travel through promises, tasks and async calls; each arrives once, where it is waited for.
class Futures : public waylay::TestBase {
 public:
  void OnTestStart() override {
    calls_ = distribution("calls");
    sort_ = distribution("sort");
    throws_ = distribution("throws");
    waiters_ = distribution("waiters");
  }
  void TestMain(waylay::Worker& worker) override {
    const int64_t calls = worker.draw_int(calls_);
    const double throws = worker.draw_float(throws_);
    const auto waiters = static_cast<std::size_t>(std::max<int64_t>(1, worker.draw_int(waiters_)));
    std::mt19937_64 random = worker.generator(0);
    std::uniform_real_distribution<double> chance(0, 1);
    for (int64_t call = 0; call < calls; ++call) {
      const bool fails = chance(random) < throws;
      const auto body = [call, fails]() -> int64_t {
        if (fails) throw std::runtime_error(std::to_string(call));
        return call * call;
      };
      std::thread runner;
      std::shared_future<int64_t> result;
      switch (worker.draw_index(sort_, 3)) {
        case 0:
          result = std::async(std::launch::async, body).share();
          break;
        case 1: {
          std::packaged_task<int64_t()> task(body);
          result = task.get_future().share();
          runner = std::thread(std::move(task));
          break;
        }
        default: {
          std::promise<int64_t> promise;
          result = promise.get_future().share();
          runner = std::thread([body, promise = std::move(promise)]() mutable {
            try {
              promise.set_value(body());
            } catch (...) {
              promise.set_exception(std::current_exception());
            }
          });
        }
      }
      std::vector<std::thread> others;
      std::atomic<std::size_t> well{0};
      for (std::size_t waiter = 0; waiter < waiters; ++waiter) {
        others.emplace_back([&, result] {
          try {
            if (result.get() == call * call && !fails) ++well;
          } catch (const std::runtime_error& error) {
            if (fails && error.what() == std::to_string(call)) ++well;
          }
        });
      }
      for (auto& other : others) other.join();
      if (runner.joinable()) runner.join();
      worker.check(well == waiters, "a waiter got another value, or another exception, than was set");
      worker.progress();
    }
  }

 private:
  waylay::Distribution calls_, sort_, throws_, waiters_;
};

// Readers share, writers are alone, and a writer that waits for a condition is woken.
class SharedMutex : public waylay::TestBase {
 public:
  void OnTestStart() override {
    readers_ = distribution("readers");
    writers_ = distribution("writers");
    rounds_ = distribution("rounds");
    patience_ = distribution("patience");
  }
  void TestMain(waylay::Worker& worker) override {
    const auto readers = std::max<int64_t>(1, worker.draw_int(readers_));
    const auto writers = std::max<int64_t>(1, worker.draw_int(writers_));
    const auto rounds = worker.draw_int(rounds_);
    const auto patience = worker.draw_duration(patience_);
    std::shared_timed_mutex mutex;
#ifdef __MINGW32__
    // mingw's POSIX threads make such a lock when it is used first, and refuse it to others meanwhile; C++'s library takes
    // no notice, and whoever was refused goes on without the lock. This test finds that within a minute: what it is to
    // look at here is everything else.
    mutex.lock();
    mutex.unlock();
#endif
    std::condition_variable_any changed;
    int64_t left = 0, right = 0;
    std::atomic<int64_t> inside{0};
    std::vector<std::thread> threads;
    for (int64_t writer = 0; writer < writers; ++writer) {
      threads.emplace_back([&, writer] {
        for (int64_t round = 0; round < rounds; ++round) {
          // Writers take turns, so each waits for the one before it.
          std::unique_lock lock(mutex);
          changed.wait(lock, [&] { return left % writers == writer; });
          worker.check(inside.fetch_add(1) == 0, "a writer is not alone");
          ++left;
          std::this_thread::yield();
          ++right;
          inside.fetch_sub(1);
          changed.notify_all();
        }
      });
    }
    for (int64_t reader = 0; reader < readers; ++reader) {
      threads.emplace_back([&] {
        for (int64_t round = 0; round < rounds; ++round) {
          std::shared_lock lock(mutex, patience);
          if (lock.owns_lock()) worker.check(left == right, "a reader sees half of a write");
        }
      });
    }
    for (auto& thread : threads) thread.join();
    worker.check(left == writers * rounds && right == left, "a round was lost");
  }

 private:
  waylay::Distribution readers_, writers_, rounds_, patience_;
};

// Hooks for a melting pot: tells the host's log what the pot does, and how often.
class TurnLog : public waylay::HooksBase {
 public:
  ~TurnLog() override { say("turns", std::to_string(turns_.load()).c_str()); }
  void OnTestLoad(const waylay::Contained& test) override { say("load", std::string(test.name).c_str()); }
  void OnTestUnload(const waylay::Contained& test) override { say("unload", std::string(test.name).c_str()); }
  void OnTestStart(const waylay::Contained&, uint32_t) override { ++open_; }
  void OnTestStop(const waylay::Contained& test, uint32_t, const waylay_ran& ran) override {
    if (--open_ < 0) say("a stop without a start in", std::string(test.name).c_str());
    if (ran.times > 0) ++turns_;
  }

 private:
  static void say(const char* what, const char* name) { std::fprintf(stderr, "turn-log: %s %s\n", what, name); }
  std::atomic<int64_t> open_{0}, turns_{0};
};

}  // namespace

WAYLAY_PLUGIN(
    "libraries-cpp",
    waylay::test<Futures>("futures", "a value or an exception that is lost, or reaches the wrong waiter")
        .param("calls", "{ exponential = { min = 1, max = 12 } }", "calls of one iteration")
        .param("sort", "{ uniform = { min = 0, max = 2 } }", "0: async, 1: packaged task, 2: promise")
        .param("throws", "{ uniform = { min = 0.0, max = 0.5 } }", "part that throws")
        .param("waiters", "{ uniform = { min = 1, max = 3 } }", "threads that wait for one result"),
    waylay::test<SharedMutex>("shared-mutex", "a writer that is not alone, or a wake-up that is lost")
        .param("readers", "{ uniform = { min = 1, max = 3 } }", "threads that read")
        .param("writers", "{ uniform = { min = 1, max = 3 } }", "threads that write in turns")
        .param("rounds", "{ exponential = { min = 1, max = 60 } }", "rounds of each thread")
        .param("patience", "{ exponential = { min = \"1us\", max = \"500us\" } }", "longest wait of a reader"),
    waylay::hooks<TurnLog>("turn-log", "tells the host's log which tests a pot loads and how many turns they had"))
