// A test for Waylay: money moves between accounts, and none of it may appear or vanish.
//
// Replace the accounts by what you want to test. `waylay run` calls TestMain again and again, on several workers at the
// same time, with numbers from the distributions in waylay.toml.
#include <algorithm>
#include <deque>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "waylay.hpp"

namespace {

constexpr int64_t kOpening = 1000;

struct Account {
  std::mutex lock;
  int64_t balance = kOpening;
};

class Transfers : public waylay::TestBase {
 public:
  void OnTestStart() override {
    account_ = distribution("account");
    action_ = distribution("action");
    amount_ = distribution("amount");
    accounts_.resize(std::max<std::size_t>(2, context().draw_index(distribution("accounts"), 65)));
  }

  void TestMain(waylay::Worker& worker) override {
    if (worker.draw_index(action_, 2) == 1) return Audit();
    const std::size_t from = worker.draw_index(account_, accounts_.size());
    const std::size_t to = worker.draw_index(account_, accounts_.size());
    if (from != to) Transfer(accounts_[from], accounts_[to], worker.draw_int(amount_));
  }

  void OnTestEnd() override { Audit(); }

 private:
  // std::scoped_lock takes both without a deadlock. Lock one after the other instead, and Waylay finds it.
  static void Transfer(Account& from, Account& to, int64_t amount) {
    std::scoped_lock both(from.lock, to.lock);
    from.balance -= amount;
    to.balance += amount;
  }

  // Locks in the order of the accounts. While it holds some of them, a transfer can only wait for one and hold none.
  void Audit() {
    std::vector<std::unique_lock<std::mutex>> locked;
    int64_t sum = 0;
    for (Account& account : accounts_) locked.emplace_back(account.lock);
    for (const Account& account : accounts_) sum += account.balance;
    if (sum != kOpening * static_cast<int64_t>(accounts_.size())) {
      throw std::runtime_error(std::to_string(sum) + " in " + std::to_string(accounts_.size()) + " accounts");
    }
  }

  std::deque<Account> accounts_;
  waylay::Distribution account_, action_, amount_;
};

}  // namespace

WAYLAY_PLUGIN("{{name}}",
              waylay::test<Transfers>("transfers", "money that appears or vanishes when transfers overlap")
                  .param("accounts", "{ uniform = { min = 2, max = 16 } }", "how many accounts there are")
                  .param("account", "{ uniform = { min = 0, max = 15 } }", "which account takes part")
                  .param("action", "{ weighted = [{ min = 0, max = 0, p = 0.9 }, { min = 1, max = 1, p = 0.1 }] }",
                         "0: a transfer, 1: an audit of all accounts")
                  .param("amount", "{ uniform = { min = 1, max = 100 } }", "what is transferred"))
