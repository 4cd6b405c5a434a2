// Known bugs in C++ and their correct twins, with what the standard library offers.
#include "zoo.h"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <semaphore>
#include <shared_mutex>
#include <thread>
#include <vector>

namespace {

// Everything that the animals share; made anew for every run.
struct Cage {
    std::mutex a, b;
    std::shared_mutex shared;
    std::condition_variable ready;
    std::counting_semaphore<4> permits{fixed ? 1 : 2};
    std::vector<int> items;
    std::unique_ptr<int> owned;
    std::atomic<int> inside{0};
    bool flag = false;
    int total = 0;
};

alignas(Cage) unsigned char room[sizeof(Cage)];
Cage *cage;

template <class... Routines> void together(Routines... routines) {
    std::thread threads[] = {std::thread(routines)...};
    for (auto &thread : threads) thread.join();
}

// Depth 2: the size that was looked at is not the size that is used.
void stale_size() {
    auto adds = [] {
        std::unique_lock lock(cage->a);
        auto size = cage->items.size();
        if (!fixed) {
            lock.unlock();
            lock.lock();
        }
        cage->items.push_back(static_cast<int>(size));
    };
    together(adds, adds);
    bug = cage->items[1] != 1;
}

// Depth 2: the two locks in either order.
void lock_order() {
    auto moves = [](std::mutex &from, std::mutex &to) {
        if (fixed) {
            std::scoped_lock both(from, to);
            return;
        }
        std::lock_guard first(from);
        std::lock_guard second(to);
    };
    together([&] { moves(cage->a, cage->b); }, [&] { moves(cage->b, cage->a); });
}

// Depth 1: nobody waits yet when the notification comes.
void wait_without_predicate() {
    together(
        [] {
            std::unique_lock lock(cage->a);
            if (fixed) cage->ready.wait(lock, [] { return cage->flag; });
            else cage->ready.wait(lock);
        },
        [] {
            std::lock_guard lock(cage->a);
            cage->flag = true;
            cage->ready.notify_one();
        });
}

// Depth 2: one owner takes what the other has just looked at.
void taken_away() {
    auto takes = [] {
        std::unique_lock lock(cage->a);
        if (!cage->owned) return;
        if (!fixed) {
            lock.unlock();
            lock.lock();
        }
        if (!cage->owned) bug = 1;
        cage->owned.reset();
    };
    cage->owned = std::make_unique<int>(1);
    together(takes, takes);
}

// Depth 2: the semaphore lets two in.
void too_many_permits() {
    auto enters = [] {
        cage->permits.acquire();
        if (++cage->inside > 1) bug = 1;
        std::this_thread::yield();
        --cage->inside;
        cage->permits.release();
    };
    together(enters, enters);
}

// Depth 2: a reader becomes a writer without looking again.
void upgrade() {
    auto adds_once = [] {
        std::shared_lock reading(cage->shared);
        bool needed = cage->total == 0;
        reading.unlock();
        if (!needed) return;
        std::unique_lock writing(cage->shared);
        if (fixed && cage->total != 0) return;
        cage->total++;
    };
    together(adds_once, adds_once);
    bug = cage->total != 1;
}

void reset() {
    if (cage) cage->~Cage();
    cage = new (room) Cage;
}

} // namespace

int main(int argc, char **argv) {
    static const animal zoo[] = {
        {"stale_size", stale_size}, {"lock_order", lock_order}, {"wait_without_predicate", wait_without_predicate},
        {"taken_away", taken_away}, {"too_many_permits", too_many_permits}, {"upgrade", upgrade},
    };
    return visit(zoo, sizeof zoo / sizeof *zoo, reset, argc, argv);
}
