// Containers that lose, duplicate or invent elements.
#include <array>
#include <condition_variable>

#include "zoo.hpp"

namespace zoo {

namespace {

// The queue of Cilk's THE protocol: the owner works at the tail, thieves at the head. Both sides announce what they take
// before they look at the other end; the bug is a thief that looks first.
class Deque {
 public:
  explicit Deque(bool fixed) : fixed_(fixed) {}

  void push(int item) {
    const long tail = tail_;
    items_[static_cast<std::size_t>(tail)] = item;
    tail_ = tail + 1;
  }
  int pop() {
    const long tail = tail_ - 1;
    tail_ = tail;                                                      // @owner-lowers
    if (head_ <= tail) return items_[static_cast<std::size_t>(tail)];  // @owner-looks
    tail_ = tail + 1;
    std::lock_guard<std::mutex> lock(lock_);
    tail_ = tail;
    if (head_ <= tail) return items_[static_cast<std::size_t>(tail)];
    tail_ = tail + 1;
    return 0;
  }
  int steal() {
    std::lock_guard<std::mutex> lock(lock_);
    const long head = head_;
    if (!fixed_) {
      if (head >= tail_) return 0;  // @thief-looks
      head_ = head + 1;             // @thief-raises
      return items_[static_cast<std::size_t>(head)];
    }
    head_ = head + 1;
    if (head + 1 > tail_) {
      head_ = head;
      return 0;
    }
    return items_[static_cast<std::size_t>(head)];
  }

 private:
  const bool fixed_;
  std::mutex lock_;
  std::atomic<long> head_{0}, tail_{0};
  std::array<int, 256> items_{};
};

}  // namespace

// work-stealing. The owner pushes, then thieves start and try twice each while the owner pops. d = 2: a thief reads the tail -> the owner lowers it,
// the owner reads the head -> the thief raises it; both have the last item then.
// @work-stealing: thief-looks -> owner-lowers, owner-looks -> thief-raises
void work_stealing(Run& run) {
  Deque deque(run.fixed);
  const long items = run.items < 1 ? 1 : run.items > 200 ? 200 : run.items;
  std::array<std::atomic<int>, 256> taken{};
  auto took = [&](int item) {
    if (item != 0 && taken[static_cast<std::size_t>(item)].fetch_add(1, std::memory_order_relaxed) != 0)
      run.bug("an item was taken twice");
  };
  for (long i = 1; i <= items; i++) deque.push(static_cast<int>(i));
  std::vector<std::thread> thieves;
  for (long i = 0; i < run.threads; i++) {
    thieves.emplace_back([&] {
      took(deque.steal());
      took(deque.steal());
    });
  }
  for (long i = 1; i <= items; i++) took(deque.pop());
  for (std::thread& thief : thieves) thief.join();
}

// stack: a stack whose pop compares the head only. d = 2: one thread reads head and successor -> the other takes both
// nodes, the other puts the first back -> the one swaps the head. The twin's head has a version.
// @stack: read -> take, put -> swap
void stack(Run& run) {
  constexpr int none = -1;
  std::array<std::atomic<int>, 3> next{};
  std::array<bool, 3> held{};
  for (int i = 0; i < 3; i++) next[static_cast<std::size_t>(i)].store(i == 2 ? none : i + 1, std::memory_order_relaxed);
  struct Head {
    int node;
    int version;
  };
  std::atomic<Head> head{Head{0, 0}};
  auto pop = [&] {
    for (;;) {
      Head old = head.load();
      if (old.node == none) return none;
      const Head lower{next[static_cast<std::size_t>(old.node)].load(), run.fixed ? old.version + 1 : 0};  // @read
      if (head.compare_exchange_strong(old, lower)) return old.node;  // @take @swap
    }
  };
  auto push = [&](int node) {
    for (;;) {
      Head old = head.load();
      next[static_cast<std::size_t>(node)].store(old.node);
      if (head.compare_exchange_strong(old, Head{node, run.fixed ? old.version + 1 : 0})) return;  // @put
    }
  };
  int one = none, two = none;
  together([&] { one = pop(); },
           [&] {
             const int first = pop();
             two = pop();
             if (first != none) push(first);
           });
  for (const int node : {one, two})
    if (node != none) held[static_cast<std::size_t>(node)] = true;
  for (int node = head.load().node, seen = 0; node != none && seen < 3; node = next[static_cast<std::size_t>(node)], seen++)
    if (held[static_cast<std::size_t>(node)]) run.bug("a node is in the stack and in a thread's hands");
}

// queue: a producer reserves a slot and fills it, a consumer takes what is reserved. d = 2: reserve -> the consumer looks,
// the consumer takes -> fill.
// @queue: reserve -> look, take -> fill
void queue(Run& run) {
  std::array<std::atomic<int>, 8> slots{};
  std::atomic<unsigned> tail{0}, head{0};
  std::mutex whole;
  auto produce = [&] {
    for (int item = 1; item <= 4; item++) {
      auto held = run.twin_takes(whole);
      const unsigned slot = tail.fetch_add(1);  // @reserve
      slots[slot] = item;                       // @fill
    }
  };
  auto consume = [&] {
    for (int tries = 0; tries < 4; tries++) {
      auto held = run.twin_takes(whole);
      if (head == tail) continue;  // @look
      const unsigned slot = head.fetch_add(1);
      if (slots[slot] == 0) run.bug("an empty slot was taken");  // @take
    }
  };
  together(produce, consume);
}

// bounded-buffer: one place, one condition for both kinds of waiting, and one thread is woken. d = 3: each of two consumers
// waits -> the producer fills the place, the producer waits for room -> the first consumer takes. Then that consumer wakes
// the other one, and nobody wakes the producer.
// @bounded-buffer: empty -> fill, empty -> fill, full -> take
void bounded_buffer(Run& run) {
  std::mutex lock;
  std::condition_variable changed;
  bool full = false;
  auto tell = [&] { run.fixed ? changed.notify_all() : changed.notify_one(); };
  auto consume = [&] {
    std::unique_lock<std::mutex> held(lock);
    changed.wait(held, [&] { return full; });  // @empty @take
    full = false;
    tell();
  };
  auto produce = [&] {
    for (int i = 0; i < 2; i++) {
      std::unique_lock<std::mutex> held(lock);
      changed.wait(held, [&] { return !full; });  // @full @fill
      full = true;
      tell();
    }
  };
  together(consume, consume, produce);
}

}  // namespace zoo
