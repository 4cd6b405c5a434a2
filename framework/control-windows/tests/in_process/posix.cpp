// Small programs of C++ threads as mingw has them. Each says whether it went well.
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

std::mutex guard, nobodys;
int sum;

template <class First, class Second>
void both(First first, Second second) {
  std::thread one(first), two(second);
  one.join();
  two.join();
}

}  // namespace

// The lost update of bodies.rs, with the same steps.
extern "C" int cpp_lost_update() {
  sum = 0;
  const auto add = [] {
    int seen;
    {
      std::lock_guard<std::mutex> lock(guard);
      seen = sum;
    }
    std::lock_guard<std::mutex> lock(guard);
    sum = seen + 1;
  };
  both(add, add);
  return sum == 2;
}

// Locks, conditions, waits with a deadline, exceptions, a static that is initialised once. No std::call_once and no
// thread_local: rustc links a second copy of what they are kept in.
extern "C" int cpp_mixture() {
  std::shared_mutex slim;
  std::condition_variable changed;
  bool ready = false;
  int caught = 0;
  const auto work = [&] {
    static const std::string name = [] {
      std::lock_guard<std::mutex> lock(nobodys);
      return std::string("a name");
    }();
    try {
      std::shared_lock<std::shared_mutex> lock(slim);
      throw std::logic_error(name);
    } catch (const std::exception& thrown) {
      std::unique_lock<std::mutex> lock(guard);
      caught += thrown.what() == name;
    }
  };
  std::thread waiting([&] {
    std::unique_lock<std::mutex> lock(guard);
    changed.wait_for(lock, std::chrono::hours(1), [&] { return ready; });
  });
  both(work, work);
  {
    std::lock_guard<std::mutex> lock(guard);
    ready = true;
    changed.notify_all();
  }
  waiting.join();
  return caught == 2;
}
