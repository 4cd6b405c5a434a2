// depth 2: debit < debit_back, credit_back < credit
// Transfers in both directions lock the accounts in opposite order.
#include <mutex>
#include <thread>
static std::mutex savings, giro;
static int moved;
static void there() {
    std::lock_guard<std::mutex> from(savings); // @debit
    std::lock_guard<std::mutex> to(giro); // @credit
    moved++;
}
static void back() {
    std::lock_guard<std::mutex> from(giro); // @credit_back
    std::lock_guard<std::mutex> to(savings); // @debit_back
    moved--;
}
int main() {
    std::thread one(there), other(back);
    one.join();
    other.join();
    return moved;
}
