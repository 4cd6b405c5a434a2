// What the C++ suites test: a counter, an account and a box, each with a seeded bug unless FIXED is set in the environment: one
// binary is both, because building it takes longer than running it.
#pragma once

#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

inline const bool fixed = std::getenv("FIXED") != nullptr;

// Two threads add; without the lock one of them may overwrite what the other added.
struct Counter {
    int value = 0;
    std::mutex lock;
    void add() {
        std::unique_lock<std::mutex> held(lock, std::defer_lock);
        if (fixed) held.lock();
        int seen = value;
        value = seen + 1;
    }
};

inline int counted() {
    Counter counter;
    std::thread other([&] { counter.add(); });
    counter.add();
    other.join();
    return counter.value;
}

// Two transfers in opposite directions; both have to lock in one order.
struct Account {
    int money = 10;
    std::mutex lock;
};

inline void transfer(Account &from, Account &to, int amount) {
    Account *first = &from, *second = &to;
    if (fixed && second < first) std::swap(first, second);
    std::lock_guard<std::mutex> one(first->lock);
    std::lock_guard<std::mutex> two(second->lock);
    from.money -= amount;
    to.money += amount;
}

inline int transferred() {
    Account here, there;
    std::thread other([&] { transfer(there, here, 2); });
    transfer(here, there, 3);
    other.join();
    return here.money + there.money;
}

// What is asked for has to be there before it is taken.
inline int taken() {
    int box = 0;
    std::mutex lock;
    std::thread giver([&] {
        std::lock_guard<std::mutex> held(lock);
        box = 7;
    });
    if (fixed) giver.join();
    int got;
    {
        std::lock_guard<std::mutex> held(lock);
        got = box;
    }
    if (giver.joinable()) giver.join();
    if (got == 0) throw std::runtime_error("the box is empty");
    return got;
}
