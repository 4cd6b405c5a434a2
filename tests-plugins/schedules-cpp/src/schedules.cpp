// Tests in C++ that fail in few schedules, and their correct twins. Every instance is fresh.
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "waylay.hpp"

namespace {

// stock, d = 2: several threads see the last piece, and each sells it.
class Stock : public waylay::TestBase {
 public:
  void TestMain(waylay::Worker&) override {
    if (available()) sell();
  }

 protected:
  bool available() {
    std::shared_lock<std::shared_mutex> lock(guard_);
    return pieces_ > 0;
  }
  void sell() {
    std::unique_lock<std::shared_mutex> lock(guard_);
    if (pieces_ == 0) throw std::logic_error("the last piece was sold twice");
    --pieces_;
  }
  std::shared_mutex guard_;
  int pieces_ = 1;
};

class StockFixed : public Stock {
 public:
  void TestMain(waylay::Worker&) override {
    std::unique_lock<std::shared_mutex> lock(guard_);
    if (pieces_ > 0) --pieces_;
  }
};

// turnstile, d = 2: one notification for two waiting threads, so that one of them may wait for ever.
class Turnstile : public waylay::TestBase {
 public:
  void TestMain(waylay::Worker&) override {
    std::thread opener([this] {
      std::lock_guard<std::mutex> lock(guard_);
      ++open_;
      notify();
    });
    {
      std::unique_lock<std::mutex> lock(guard_);
      // Both wait for all to have opened, but only one is told.
      changed_.wait(lock, [this] { return open_ >= 2; });
    }
    opener.join();
  }

 protected:
  virtual void notify() { changed_.notify_one(); }
  std::mutex guard_;
  std::condition_variable changed_;
  int open_ = 0;
};

class TurnstileFixed : public Turnstile {
 protected:
  void notify() override { changed_.notify_all(); }
};

// seats, d = 2: a list without a lock; two threads take the same last seat. Plain loads and stores in containers only.
class Seats : public waylay::TestBase {
 public:
  void TestMain(waylay::Worker& worker) override {
    const int seat = take();
    worker.check(seat >= 0, "a seat was taken twice");
    std::lock_guard<std::mutex> lock(guard_);
    for (int other : taken_) worker.check(other != seat, "a seat was taken twice");
    taken_.push_back(seat);
  }

 protected:
  virtual int take() {
    if (free_.empty()) return -1;
    const int seat = free_.back();
    free_.pop_back();
    return seat;
  }
  std::mutex guard_;
  std::vector<int> free_{1, 2, 3, 4, 5, 6, 7, 8}, taken_;
};

class SeatsFixed : public Seats {
 protected:
  int take() override {
    std::lock_guard<std::mutex> lock(guard_);
    return Seats::take();
  }
};

// gone, d = 2: a record is found under the lock and read behind it, when the other thread has deleted it. Nothing writes to it.
class Gone : public waylay::TestBase {
 public:
  void TestMain(waylay::Worker& worker) override {
    std::unique_lock<std::mutex> lock(guard_);
    if (arrived_++ == 0) {
      const Record* found = record_;
      if (held()) {
        check(worker, found);
      } else {
        lock.unlock();
        check(worker, found);
      }
    } else {
      Record* old = record_;
      record_ = nullptr;
      lock.unlock();
      delete old;
    }
  }

 protected:
  virtual bool held() const { return false; }

 private:
  struct Record {
    long one = 10, other = 20;
  };
  static void check(waylay::Worker& worker, const Record* record) {
    worker.check(!record || record->one + record->other == 30, "a record was read that is gone");
  }
  std::mutex guard_;
  int arrived_ = 0;
  Record* record_ = new Record;
};

class GoneFixed : public Gone {
 protected:
  bool held() const override { return true; }
};

}  // namespace

WAYLAY_PLUGIN("schedules-cpp",                                                    //
              waylay::test<Stock>("stock", "the last piece is sold twice"),       //
              waylay::test<StockFixed>("stock-fixed", "the last piece is sold once"),
              waylay::test<Turnstile>("turnstile", "two wait and one is told"),
              waylay::test<TurnstileFixed>("turnstile-fixed", "two wait and both are told"),
              waylay::test<Seats>("seats", "two take one seat of a list without a lock"),
              waylay::test<SeatsFixed>("seats-fixed", "two take a seat each, with a lock"),
              waylay::test<Gone>("gone", "a record is read that another thread deletes"),
              waylay::test<GoneFixed>("gone-fixed", "a record is read while nobody may delete it"))
