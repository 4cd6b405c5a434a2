// Objects that threads share and close, count or make without agreeing on it.
#include "zoo.hpp"

namespace zoo {

// channel. Three senders use a channel that a fourth thread closes and frees once all items are through. d = 2: a sender
// sees the channel open -> close, free -> the sender uses it. Freed memory is marked, so that its use is noticed and does
// no other harm. The twin counts who is inside.
// @channel: look -> close, free -> use
void channel(Run& run) {
  std::mutex lock, inside;
  std::atomic<bool> open{true}, freed{false};
  long sent = 0;
  auto send = [&] {
    for (long i = 0; i < run.items; i++) {
      std::lock_guard<std::mutex> held(lock);
      sent++;
    }
    auto guard = run.twin_takes(inside);
    if (!open) return;                                              // @look
    if (freed) run.bug("a channel is used after it was freed");  // @use
    std::lock_guard<std::mutex> held(lock);
    sent++;
  };
  auto close = [&] {
    for (long i = 0; i < run.items; i++) std::lock_guard<std::mutex> held(lock);
    auto guard = run.twin_takes(inside);
    open = false;  // @close
    freed = true;  // @free
  };
  together(send, send, send, close);
}

// account. Money goes from one account to another; the auditor adds both up. d = 2: withdraw -> audit, audit -> deposit.
// @account: withdraw -> audit-from, audit-to -> deposit
void account(Run& run) {
  std::mutex first, second, whole;
  long from = 100, to = 0;
  auto transfer = [&] {
    for (int i = 0; i < 3; i++) {
      auto held = run.twin_takes(whole);
      {
        std::lock_guard<std::mutex> lock(first);  // @withdraw
        from -= 10;
      }
      std::lock_guard<std::mutex> lock(second);  // @deposit
      to += 10;
    }
  };
  auto audit = [&] {
    auto held = run.twin_takes(whole);
    std::lock_guard<std::mutex> one(first);   // @audit-from
    std::lock_guard<std::mutex> two(second);  // @audit-to
    if (from + to != 100) run.bug("money is on its way while it is counted");
  };
  together(transfer, audit);
}

// lazy-init. d = 2: each of two looks -> the other one sets.
// @lazy-init: look -> set, look -> set
void lazy_init(Run& run) {
  std::atomic<int*> instance{nullptr};
  std::atomic<int> made{0};
  std::atomic<long> words[2] = {};
  std::mutex lock;
  int object = 0;
  auto get = [&](int who) {
    pass_time(words[who], 5);
    auto held = run.twin_takes(lock);
    if (instance.load() == nullptr) {  // @look
      made++;
      instance.store(&object);  // @set
    }
  };
  together([&] { get(0); }, [&] { get(1); });
  if (made != 1) run.bug("two threads made the single object");
}

}  // namespace zoo
