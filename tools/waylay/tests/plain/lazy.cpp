// A table is made by whoever needs it first, and it is asked without a lock whether that happened.
#include <cassert>
#include <mutex>
#include <thread>
#include <vector>

struct Table {
    std::vector<int> squares;
    bool ready = false;
#ifdef FIXED
    std::mutex lock;
#endif

    int square(int of) {
#ifdef FIXED
        std::lock_guard<std::mutex> held(lock);
#endif
        if (!ready) {
            ready = true;
            squares.resize(8);
            for (int i = 0; i < 8; i++) squares[i] = i * i;
        }
        return squares.size() == 8 ? squares[of] : -1;
    }
};

int main() {
    Table table;
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++)
        threads.emplace_back([&table, i] { assert(table.square(i + 2) == (i + 2) * (i + 2)); });
    for (auto &thread : threads) thread.join();
}
