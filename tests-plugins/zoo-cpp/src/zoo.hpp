// What a program of the zoo is: one function that starts threads, joins them, and notices whether its bug showed.
//
// Each stands with its depth d, the least number of ordering constraints that make the bug appear, and with these
// constraints. A constraint `a -> b` says that a happens before b. `fixed` makes the correct twin of the same program. The
// lines that begin with the program's name say the same by place, for tests/zoo.rs: `use` is where `@use` stands. Of
// several lines each says it in its own way.
// Data that threads share without a lock is atomic: every access is a step of strict mode.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace zoo {

struct Run {
  bool fixed = false;
  long threads = 0;  // of the program's own parameters
  long items = 0;
  std::atomic<const char*> noticed{nullptr};

  // Notes that the bug showed; the first word stays.
  void bug(const char* what) {
    const char* none = nullptr;
    noticed.compare_exchange_strong(none, what, std::memory_order_relaxed);
  }
  // A lock that only the twin takes.
  std::unique_lock<std::mutex> twin_takes(std::mutex& lock) const {
    return fixed ? std::unique_lock<std::mutex>(lock) : std::unique_lock<std::mutex>();
  }
};

template <class... Bodies>
void together(Bodies... bodies) {
  std::thread threads[] = {std::thread(bodies)...};
  for (std::thread& thread : threads) thread.join();
}

// Work that has nothing to do with the bug.
inline void pass_time(std::atomic<long>& word, long steps) {
  for (long i = 0; i < steps; i++) word.store(i);
}

void reorder(Run& run);
void twostage(Run& run);
void work_stealing(Run& run);
void stack(Run& run);
void queue(Run& run);
void bounded_buffer(Run& run);
void channel(Run& run);
void account(Run& run);
void lazy_init(Run& run);

}  // namespace zoo
