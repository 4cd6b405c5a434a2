// The contract around the programs: every program is two tests, itself and its correct twin.
#include "zoo.hpp"

#include "waylay.hpp"

namespace {

template <void (*Program)(zoo::Run&), bool Fixed>
class Animal : public waylay::TestBase {
 public:
  void OnTestStart() override {
    threads_ = distribution("threads");
    items_ = distribution("items");
  }
  void TestMain(waylay::Worker& worker) override {
    zoo::Run run;
    run.fixed = Fixed;
    if (threads_) run.threads = worker.draw_int(threads_);
    if (items_) run.items = worker.draw_int(items_);
    Program(run);
    const char* noticed = run.noticed.load(std::memory_order_relaxed);
    if (noticed) worker.fail(noticed);
  }

 private:
  waylay::Distribution threads_, items_;
};

template <void (*Program)(zoo::Run&)>
auto buggy(const char* name, const char* about) {
  return waylay::test<Animal<Program, false>>(name, about);
}
template <void (*Program)(zoo::Run&)>
auto fixed(const char* name) {
  return waylay::test<Animal<Program, true>>(name, "the same, done right");
}

}  // namespace

WAYLAY_PLUGIN("zoo-cpp",
              buggy<zoo::reorder>("reorder", "sees one of two words that belong together")
                  .param("threads", "3", "threads that set both words"),
              fixed<zoo::reorder>("reorder-fixed").param("threads", "3", "threads that set both words"),
              buggy<zoo::twostage>("twostage", "sees the first stage without the second")
                  .param("threads", "2", "threads that go through both stages"),
              fixed<zoo::twostage>("twostage-fixed").param("threads", "2", "threads that go through both stages"),
              buggy<zoo::work_stealing>("work-stealing", "an item is taken and stolen")
                  .param("threads", "1", "stealers, with two attempts each")
                  .param("items", "4", "items that the owner pushes and pops"),
              fixed<zoo::work_stealing>("work-stealing-fixed")
                  .param("threads", "1", "stealers, with two attempts each")
                  .param("items", "4", "items that the owner pushes and pops"),
              buggy<zoo::stack>("stack", "the head came back with another successor"),
              fixed<zoo::stack>("stack-fixed"),
              buggy<zoo::queue>("queue", "takes from a slot that is not filled yet"), fixed<zoo::queue>("queue-fixed"),
              buggy<zoo::bounded_buffer>("bounded-buffer", "wakes a thread of the wrong kind"),
              fixed<zoo::bounded_buffer>("bounded-buffer-fixed"),
              buggy<zoo::channel>("channel", "uses a channel after it was closed and freed")
                  .param("items", "20", "items that are sent before"),
              fixed<zoo::channel>("channel-fixed").param("items", "20", "items that are sent before"),
              buggy<zoo::account>("account", "counts the money while some is on its way"),
              fixed<zoo::account>("account-fixed"), buggy<zoo::lazy_init>("lazy-init", "makes a single object twice"),
              fixed<zoo::lazy_init>("lazy-init-fixed"))
