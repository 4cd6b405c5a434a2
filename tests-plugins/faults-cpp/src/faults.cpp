// Tests in C++ that fail on purpose. Each runs well `after` times, over all workers, and then does what its name says.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "waylay.hpp"

namespace {

// Runs well a number of times and then strikes in every iteration.
class Fault : public waylay::TestBase {
 public:
  void OnTestStart() override { left_ = context().draw_int(distribution("after")); }
  void TestMain(waylay::Worker& worker) override {
    if (left_.fetch_sub(1) > 0) return;
    left_ = 0;
    Strike(worker);
  }

 protected:
  virtual void Strike(waylay::Worker& worker) = 0;

 private:
  std::atomic<int64_t> left_{0};
};

class Unbalanced : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// An exception of the test's own leaves TestMain.
class Exception : public Fault {
  void Strike(waylay::Worker&) override { Withdraw(7, 8); }
  static void Withdraw(int balance, int amount) {
    if (balance < amount) throw Unbalanced("the balance is " + std::to_string(balance));
  }
};

// An exception that the standard library throws.
class OutOfRange : public Fault {
  void Strike(waylay::Worker&) override {
    std::vector<int> three{1, 2, 3};
    three.at(three.size()) = 4;
  }
};

// Something that is no exception class at all.
class Number : public Fault {
  void Strike(waylay::Worker&) override { throw 42; }
};

// An exception on a thread of its own: nobody can catch it, so std::terminate ends the process.
class ThreadException : public Fault {
  void Strike(waylay::Worker&) override {
    std::thread([] { throw Unbalanced("on a thread of its own"); }).join();
  }
};

// An exception out of a noexcept function: std::terminate again.
class NoexceptException : public Fault {
  void Strike(waylay::Worker&) override { Promises(); }
  static void Promises() noexcept { std::map<int, int>().at(1) = 2; }
};

// A virtual call on an object that is only half made: the method is still pure.
class PureVirtual : public Fault {
  struct Shape {
    Shape() { Count(this); }
    virtual ~Shape() = default;
    virtual int sides() const = 0;
    __attribute__((noinline)) static int Count(Shape* shape) {
      Shape* volatile seen = shape;
      return seen->sides();
    }
  };
  // Two of them: with one the compiler would know which method is meant, and call it.
  struct Square : Shape {
    int sides() const override { return 4; }
  };
  struct Triangle : Shape {
    int sides() const override { return 3; }
  };
  void Strike(waylay::Worker& worker) override {
    if (worker.seed() % 2 == 0) {
      Square made;
    } else {
      Triangle made;
    }
  }
};

// Two threads lock two mutexes in opposite orders; each holds one before either asks for the other.
class Deadlock : public Fault {
  void Strike(waylay::Worker&) override {
    std::mutex left, right, meeting;
    std::condition_variable met;
    int holding = 0;
    auto both = [&](std::mutex& first, std::mutex& second) {
      std::lock_guard<std::mutex> one(first);
      {
        std::unique_lock<std::mutex> lock(meeting);
        holding++;
        met.notify_all();
        met.wait(lock, [&] { return holding == 2; });
      }
      std::lock_guard<std::mutex> two(second);
    };
    std::thread there([&] { both(left, right); });
    std::thread back([&] { both(right, left); });
    there.join();
    back.join();
  }
};

// Of a hundred strings, one is never deleted.
class MemoryLeak : public Fault {
  void Strike(waylay::Worker&) override {
    for (int i = 1; i < 100; i++) std::make_unique<std::string>(500, 'x');
    Forgotten();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  __attribute__((noinline)) static void Forgotten() {
    std::string* volatile made = new std::string(500, 'y');
    (void)made;
  }
};

// The bad ones.
class CreateThrows : public waylay::TestBase {
 public:
  CreateThrows() { throw Unbalanced("a test that cannot be made"); }
  void TestMain(waylay::Worker&) override {}
};

class StartThrows : public waylay::TestBase {
  void OnTestStart() override { throw Unbalanced("a test that does not start"); }
  void TestMain(waylay::Worker&) override {}
};

class EndThrows : public waylay::TestBase {
  void TestMain(waylay::Worker&) override { std::this_thread::sleep_for(std::chrono::microseconds(100)); }
  void OnTestEnd() override { throw Unbalanced("something is left that should not be"); }
};

template <class T>
waylay::TestEntry fault(const char* name, const char* about) {
  return waylay::test<T>(name, about)
      .param("after", "{ uniform = { min = 0, max = 20 } }", "iterations that go well first");
}

}  // namespace

WAYLAY_PLUGIN("faults-cpp", fault<Exception>("exception", "an exception leaves TestMain"),
              fault<OutOfRange>("out-of-range", "the standard library throws"),
              fault<Number>("number", "throws something that is no exception"),
              fault<ThreadException>("thread-exception", "an uncaught exception on a thread of its own"),
              fault<NoexceptException>("noexcept-exception", "throws out of a noexcept function"),
              fault<PureVirtual>("pure-virtual", "calls a pure virtual method"),
              fault<Deadlock>("deadlock", "two threads wait for each other's std::mutex"),
              fault<MemoryLeak>("memory-leak", "never deletes one of a hundred strings"),
              waylay::test<CreateThrows>("create-throws", "throws while it is made"),
              waylay::test<StartThrows>("start-throws", "throws in OnTestStart"),
              waylay::test<EndThrows>("end-throws", "throws in OnTestEnd"))
