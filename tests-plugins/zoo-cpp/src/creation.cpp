// Programs whose main thread has to start many threads before any of them has come far: the pattern of section VI of
// "Promoting Secondary Orders of Event Pairs in Randomized Scheduling using a Randomized Stride".
#include "zoo.hpp"

namespace zoo {

// reorder. N setters write two words, a checker that is started last compares them. d = N + 1: one setter writes the first
// word -> the checker reads it, the checker reads the second word -> each setter writes it.
// @reorder: one -> check, check -> two, check -> two, check -> two
void reorder(Run& run) {
  std::atomic<int> first{0}, second{0};
  std::mutex pair;
  auto set = [&] {
    auto held = run.twin_takes(pair);
    first = 1;    // @one
    second = -1;  // @two
  };
  auto check = [&] {
    auto held = run.twin_takes(pair);
    const int a = first, b = second;  // @check
    if (!(a == 0 && b == 0) && !(a == 1 && b == -1) && !(a == 0 && b == -1)) run.bug("one word was set without the other");
  };
  std::vector<std::thread> threads;
  for (long i = 0; i < run.threads; i++) threads.emplace_back(set);
  threads.emplace_back(check);
  for (std::thread& thread : threads) thread.join();
}

// twostage. N writers go through two stages, each under its own lock; a reader that is started last compares them. d = N + 1:
// first stage of one -> the reader reads it, the reader reads the second -> each writer's second stage.
// @twostage: one -> read-one, read-two -> two, read-two -> two
void twostage(Run& run) {
  std::mutex first_lock, second_lock, both;
  int first = 0, second = 0;
  auto write = [&] {
    auto held = run.twin_takes(both);
    {
      std::lock_guard<std::mutex> lock(first_lock);  // @one
      first = 1;
    }
    std::lock_guard<std::mutex> lock(second_lock);  // @two
    second = first + 1;
  };
  auto read = [&] {
    auto held = run.twin_takes(both);
    int seen;
    {
      std::lock_guard<std::mutex> lock(first_lock);  // @read-one
      seen = first;
    }
    if (seen == 0) return;
    std::lock_guard<std::mutex> lock(second_lock);  // @read-two
    if (second != seen + 1) run.bug("the second stage is missing");
  };
  std::vector<std::thread> threads;
  for (long i = 0; i < run.threads; i++) threads.emplace_back(write);
  threads.emplace_back(read);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace zoo
