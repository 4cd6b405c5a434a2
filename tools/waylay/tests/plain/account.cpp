// An account whose balance is changed under its lock and moved to another without.
#include <cassert>
#include <mutex>
#include <thread>

struct Account {
    long balance;
    std::mutex lock;

    void deposit(long amount) {
        std::lock_guard<std::mutex> held(lock);
        balance += amount;
    }
};

static void transfer(Account &from, Account &to, long amount) {
#ifdef FIXED
    std::scoped_lock held(from.lock, to.lock);
#endif
    from.balance -= amount;
    to.balance += amount;
}

int main() {
    Account mine{100, {}}, yours{100, {}};
    std::thread one([&] { transfer(mine, yours, 30); });
    std::thread two([&] { mine.deposit(50); });
    std::thread three([&] { transfer(yours, mine, 20); });
    one.join();
    two.join();
    three.join();
    assert(mine.balance + yours.balance == 250);
}
