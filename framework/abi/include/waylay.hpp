// waylay.hpp: the ISTS contract for C++17. Derive from waylay::TestBase, then list the tests once:
//
//   class Transfer : public waylay::TestBase {
//    public:
//     void OnTestStart() override { amount_ = distribution("amount"); }
//     void TestMain(waylay::Worker& worker) override { ... worker.draw_int(amount_) ... }
//    private:
//     waylay::Distribution amount_;
//   };
//   WAYLAY_PLUGIN("bank", waylay::test<Transfer>("transfer", "money lost between two accounts")
//                             .param("amount", "{ uniform = { min = 1, max = 100 } }"))
//
// An exception that leaves one of the four methods stops at the boundary and becomes a failure with the stack of the
// place that threw it.
#ifndef WAYLAY_HPP
#define WAYLAY_HPP

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>

#if defined(__GNUG__)
#include <cxxabi.h>
#include <cstdlib>
#endif

// libstdc++ asks the type_info of a catch clause while the thrower's stack still stands; see detail::ThrowRecorder.
#if defined(__GLIBCXX__) && defined(__ELF__)
#define WAYLAY_THROW_STACKS 1
#include <unwind.h>
#endif

#include "waylay.h"

namespace waylay {

/// A named random distribution of a test.
class Distribution {
 public:
  Distribution() = default;
  explicit Distribution(const waylay_distribution* raw) : raw_(raw) {}
  explicit operator bool() const { return raw_ != nullptr; }
  const waylay_distribution* raw() const { return raw_; }

 private:
  const waylay_distribution* raw_ = nullptr;
};

/// What the host does for a test: the instance's services (any thread) or a worker's (its own thread).
class Context {
 public:
  Context(const waylay_services* services, waylay_context* raw) : services_(services), raw_(raw) {}

  /// Reports a failure; returns after the evidence was taken.
  void fail(std::string_view message) { report(message, WAYLAY_FAILURE_ASSERT, nullptr, 0); }
  /// Fails with the message unless the condition holds. Returns the condition.
  bool check(bool condition, std::string_view message) {
    if (!condition) fail(message);
    return condition;
  }
  void log(std::string_view text, uint32_t level = WAYLAY_LOG_INFO) {
    services_->log(raw_, level, text.data(), text.size());
  }
  bool cancelled() const { return services_->cancelled(raw_) != 0; }
  /// The seed of this iteration (worker) or of this test (instance).
  uint64_t seed() const { return services_->seed(raw_); }
  /// A generator for a thread that the test starts itself: the same numbers for the same seed and index, everywhere.
  std::mt19937_64 generator(uint64_t index) const {
    const uint64_t from = seed();
    std::seed_seq mixed{static_cast<uint32_t>(from), static_cast<uint32_t>(from >> 32), static_cast<uint32_t>(index),
                        static_cast<uint32_t>(index >> 32)};
    return std::mt19937_64(mixed);
  }
  Distribution distribution(const char* name) const { return Distribution(services_->distribution(raw_, name)); }
  int64_t draw_int(Distribution distribution) { return services_->draw_int(raw_, distribution.raw()); }
  double draw_float(Distribution distribution) { return services_->draw_float(raw_, distribution.raw()); }
  std::chrono::nanoseconds draw_duration(Distribution distribution) {
    return std::chrono::nanoseconds(static_cast<int64_t>(services_->draw_nanos(raw_, distribution.raw())));
  }
  /// Draws an index below count; what the distribution gives outside of it is moved to the nearest index.
  std::size_t draw_index(Distribution distribution, std::size_t count) {
    return waylay_draw_index(services_, raw_, distribution.raw(), count);
  }
  /// Lends a shared object until it is released or TestMain returns; null when nobody provides the kind.
  template <class T>
  T* acquire(const char* kind) {
    return static_cast<T*>(services_->acquire(raw_, kind));
  }
  void release(void* object) { services_->release(raw_, object); }
  /// Keeps an object that this iteration holds past its end: it is the instance's until context().release, or until the
  /// instance is destroyed. False when the iteration does not hold it.
  bool keep(void* object) { return services_->keep(raw_, object) != 0; }
  /// Says that a long iteration is getting somewhere.
  void progress() { services_->progress(raw_); }
  /// The same context, for the C functions.
  waylay_context* raw() const { return raw_; }
  const waylay_combine* combine() const { return services_->combine; }

 private:
  friend struct Adapter;
  friend class PluginTable;
  void report(std::string_view message, uint32_t kind, const uintptr_t* frames, std::size_t frame_count) {
    waylay_failure failure{};
    failure.size = sizeof failure;
    failure.kind = kind;
    failure.message = message.data();
    failure.message_len = message.size();
    failure.frames = frames;
    failure.frame_count = frame_count;
    failed_.store(true, std::memory_order_relaxed);
    services_->fail(raw_, &failure);
  }

  const waylay_services* services_;
  waylay_context* raw_;
  std::atomic<bool> failed_{false};
};

/// The context of one worker thread, valid during one TestMain. Threads that the iteration starts and joins may use
/// fail, check, log, cancelled and progress of it.
class Worker : public Context {
 public:
  using Context::Context;
  /// This worker has nothing more to do: TestMain is not called on it again. Not a failure.
  void done() { done_ = true; }

 private:
  friend struct Adapter;
  bool done_ = false;
};

/// Base of every test.
class TestBase {
 public:
  virtual ~TestBase() = default;
  /// Prepares the test. Throw to say that it cannot run.
  virtual void OnTestStart() {}
  /// One iteration; called again and again, on all workers at the same time.
  virtual void TestMain(Worker& worker) = 0;
  /// The test is to stop: add no more work. Called while workers may be inside TestMain; must be quick.
  virtual void OnTestCancelled() {}
  /// Cleans up; no worker is inside TestMain any more.
  virtual void OnTestEnd() {}

  /// The instance's services, for any thread. Ready from OnTestStart on.
  Context& context() { return *context_; }
  /// What the host does for a test that combines others, else null.
  const waylay_combine* combine() const { return context_->combine(); }
  Distribution distribution(const char* name) { return context_->distribution(name); }

 private:
  friend struct Adapter;
  Context* context_ = nullptr;
};

namespace detail {
inline std::string type_name(const std::type_info& type) {
#if defined(__GNUG__)
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), std::free);
  if (status == 0 && text) return text.get();
#endif
  return type.name();
}
#ifdef WAYLAY_THROW_STACKS
/// The return addresses of the last throw on this thread that reached the boundary, innermost first.
struct ThrowStack {
  uintptr_t frames[64];
  std::size_t count;
};
__attribute__((visibility("hidden"))) inline thread_local ThrowStack throw_stack{};

/// A type that is never thrown. `key` stays undefined, so that no compiler emits its type_info: ThrowRecorder is it.
class NeverThrown {
  virtual void key();
};

/// Stands in a catch clause, where the search phase of an exception asks it "is this yours?" before anything is
/// unwound. It notes the stack and says no.
class ThrowRecorder final : public std::type_info {
 public:
  ThrowRecorder() : std::type_info("waylay::detail::NeverThrown") {}
  bool __do_catch(const std::type_info*, void**, unsigned) const override {
    throw_stack.count = 0;
    _Unwind_Backtrace(note, nullptr);
    return false;
  }

 private:
  static _Unwind_Reason_Code note(_Unwind_Context* frame, void*) {
    const uintptr_t address = _Unwind_GetIP(frame);
    void* function = _Unwind_FindEnclosingFunction(reinterpret_cast<void*>(address - 1));
    // Whatever is inside of the throw itself is of no interest.
    if (function == reinterpret_cast<void*>(abi::__cxa_throw) ||
        function == reinterpret_cast<void*>(abi::__cxa_rethrow)) {
      throw_stack.count = 0;
      return _URC_NO_REASON;
    }
    if (throw_stack.count == sizeof throw_stack.frames / sizeof throw_stack.frames[0]) return _URC_END_OF_STACK;
    throw_stack.frames[throw_stack.count++] = address;
    return _URC_NO_REASON;
  }
};
// Hidden: each plugin has its own, whatever else is loaded.
__attribute__((visibility("hidden"))) inline ThrowRecorder throw_recorder __asm__(
    "_ZTIN6waylay6detail11NeverThrownE");
#endif

/// Describes the exception in flight.
inline std::string describe_exception() {
  try {
    throw;
  } catch (const std::exception& error) {
    return "C++ exception " + type_name(typeid(error)) + ": " + error.what();
  } catch (const std::string& text) {
    return "C++ exception std::string: " + text;
  } catch (const char* text) {
    return std::string("C++ exception const char*: ") + text;
  } catch (...) {
#if defined(__GNUG__)
    if (const std::type_info* type = abi::__cxa_current_exception_type()) return "C++ exception " + type_name(*type);
#endif
    return "C++ exception of unknown type";
  }
}
}  // namespace detail

/// Joins a TestBase to the C contract; exceptions end here.
struct Adapter {
  waylay_instance raw;
  std::unique_ptr<TestBase> test;
  const waylay_services* services;
  Context context;

  Adapter(std::unique_ptr<TestBase> made, const waylay_create_args* args)
      : raw{}, test(std::move(made)), services(args->services), context(args->services, args->context) {
    raw.size = sizeof raw;
    raw.state = this;
    raw.OnTestStart = [](waylay_instance* self) { return of(self)->start(); };
    raw.TestMain = [](waylay_instance* self, waylay_context* worker) { return of(self)->main(worker); };
    raw.OnTestCancelled = [](waylay_instance* self) { of(self)->guard([](TestBase& t) { t.OnTestCancelled(); }); };
    raw.OnTestEnd = [](waylay_instance* self) { of(self)->guard([](TestBase& t) { t.OnTestEnd(); }); };
    test->context_ = &context;
  }

  static Adapter* of(waylay_instance* self) { return static_cast<Adapter*>(self->state); }

  int32_t start() {
    context.failed_.store(false, std::memory_order_relaxed);
    guard([](TestBase& t) { t.OnTestStart(); });
    return context.failed_.load(std::memory_order_relaxed) ? WAYLAY_FAILED : WAYLAY_OK;
  }
  int32_t main(waylay_context* raw_worker) {
    Worker worker(services, raw_worker);
    guarded(worker, [&] { test->TestMain(worker); });
    if (worker.failed_.load(std::memory_order_relaxed)) return WAYLAY_FAILED;
    return worker.done_ ? WAYLAY_DONE : WAYLAY_OK;
  }
  template <class Body>
  void guard(Body body) {
    guarded(context, [&] { body(*test); });
  }
  /// Runs the body; an exception that leaves it is reported to the context.
  template <class Body>
  static void guarded(Context& context, Body body) {
    try {
      body();
    }
#ifdef WAYLAY_THROW_STACKS
    catch (const detail::NeverThrown&) {
    } catch (...) {
      context.report(detail::describe_exception(), WAYLAY_FAILURE_EXCEPTION, detail::throw_stack.frames,
                     detail::throw_stack.count);
    }
#else
    catch (...) {
      context.report(detail::describe_exception(), WAYLAY_FAILURE_EXCEPTION, nullptr, 0);
    }
#endif
  }
};

/// Describes one test; see waylay::test.
class TestEntry {
 public:
  TestEntry(std::string name, std::string about, std::function<std::unique_ptr<TestBase>()> make)
      : make_(std::move(make)) {
    info_.size = sizeof info_;
    info_.name = keep(std::move(name));
    info_.about = keep(std::move(about));
  }
  /// A distribution that the test draws from, with its default as a TOML value.
  TestEntry& param(std::string name, std::string default_value, std::string about = {}) {
    waylay_param_info made{};
    made.size = sizeof made;
    made.name = keep(std::move(name));
    made.default_value = keep(std::move(default_value));
    made.about = about.empty() ? nullptr : keep(std::move(about));
    params_->push_back(made);
    return *this;
  }
  /// The test runs other tests: see waylay_combine.
  TestEntry& combines() {
    info_.flags |= WAYLAY_TEST_COMBINES;
    return *this;
  }
  /// A shared kind that the test can take.
  TestEntry& takes(std::string kind) {
    takes_->push_back(keep(std::move(kind)));
    return *this;
  }
  const waylay_test_info* seal() {
    param_pointers_->clear();
    for (const auto& param : *params_) param_pointers_->push_back(&param);
    info_.params = param_pointers_->data();
    info_.param_count = static_cast<uint32_t>(param_pointers_->size());
    info_.takes = takes_->data();
    info_.take_count = static_cast<uint32_t>(takes_->size());
    return &info_;
  }
  std::unique_ptr<TestBase> make() const { return make_(); }
  std::string_view name() const { return info_.name; }

 private:
  // Shared so that copies of an entry keep the addresses that info_ holds.
  const char* keep(std::string text) { return texts_->emplace_back(std::move(text)).c_str(); }
  std::shared_ptr<std::deque<std::string>> texts_ = std::make_shared<std::deque<std::string>>();
  std::shared_ptr<std::deque<waylay_param_info>> params_ = std::make_shared<std::deque<waylay_param_info>>();
  std::shared_ptr<std::vector<const waylay_param_info*>> param_pointers_ =
      std::make_shared<std::vector<const waylay_param_info*>>();
  std::shared_ptr<std::vector<const char*>> takes_ = std::make_shared<std::vector<const char*>>();
  std::function<std::unique_ptr<TestBase>()> make_;
  waylay_test_info info_{};
};

/// A test named `name`; `about` says in one line what bug it would notice.
template <class T>
TestEntry test(std::string name, std::string about) {
  return TestEntry(std::move(name), std::move(about), [] { return std::make_unique<T>(); });
}

/// A shared kind: objects of type T, made and destroyed by the host when tests need them.
template <class T>
struct Kind {
  const char* name;
  const char* about;
};
template <class T>
Kind<T> kind(const char* name, const char* about) {
  return {name, about};
}

/// One test inside a combiner, as its hooks see it.
struct Contained {
  std::string_view name;
  /// Of the time, relative to the other tests.
  double share;
  /// WAYLAY_CONTAINED_READY or one of its siblings.
  uint32_t state;
};

/// Base of hooks into a melting pot: derive, list with waylay::hooks in WAYLAY_PLUGIN, and name them under `hooks` in the
/// configuration. Exceptions must not leave these methods.
class HooksBase {
 public:
  virtual ~HooksBase() = default;
  /// A contained test was created and started. One call at a time.
  virtual void OnTestLoad(const Contained&) {}
  /// A contained test is about to be ended and destroyed. One call at a time.
  virtual void OnTestUnload(const Contained&) {}
  /// A worker is about to run a contained test. Many calls at the same time.
  virtual void OnTestStart(const Contained&, uint32_t /*worker*/) {}
  /// The worker's turn is over. Many calls at the same time.
  virtual void OnTestStop(const Contained&, uint32_t /*worker*/, const waylay_ran&) {}
};

/// Hooks that a plugin can make.
template <class T>
struct Hooks {
  const char* name;
  const char* about;
};
template <class T>
Hooks<T> hooks(const char* name, const char* about) {
  return {name, about};
}

/// Everything that a plugin holds; made once by WAYLAY_PLUGIN.
class PluginTable {
 public:
  template <class... Items>
  explicit PluginTable(const char* name, Items... items) {
    info_.size = sizeof info_;
    info_.abi_version = WAYLAY_ABI_VERSION;
    info_.name = name;
    (add(std::move(items)), ...);
    for (auto& entry : tests_) test_pointers_.push_back(entry.seal());
    for (const auto& made : kinds_) kind_pointers_.push_back(&made);
    info_.tests = test_pointers_.data();
    info_.test_count = static_cast<uint32_t>(test_pointers_.size());
    info_.kinds = kind_pointers_.data();
    info_.kind_count = static_cast<uint32_t>(kind_pointers_.size());
    for (const auto& made : hooks_) hook_pointers_.push_back(&made);
    info_.hooks = hook_pointers_.data();
    info_.hook_count = static_cast<uint32_t>(hook_pointers_.size());
  }
  PluginTable(const PluginTable&) = delete;
  PluginTable& operator=(const PluginTable&) = delete;

  const waylay_plugin_info* info() const { return &info_; }

  waylay_instance* create(const waylay_create_args* args) const {
    Context context(args->services, args->context);
    Adapter* made = nullptr;
    Adapter::guarded(context, [&] {
      for (const auto& entry : tests_) {
        if (entry.name() == args->test) {
          made = new Adapter(entry.make(), args);
          return;
        }
      }
      context.fail(std::string("this plugin has no test named ") + args->test);
    });
    return made == nullptr ? nullptr : &made->raw;
  }
  static void destroy(waylay_instance* instance) {
    if (instance == nullptr) return;
    Adapter* adapter = Adapter::of(instance);
    adapter->guard([adapter](TestBase&) { adapter->test.reset(); });
    delete adapter;
  }

 private:
  void add(TestEntry entry) { tests_.push_back(std::move(entry)); }
  template <class T>
  void add(Kind<T> made) {
    waylay_kind_info info{};
    info.size = sizeof info;
    info.name = made.name;
    info.about = made.about;
    info.create = []() -> void* {
      try {
        return new T();
      } catch (...) {
        return nullptr;
      }
    };
    info.destroy = [](void* object) { delete static_cast<T*>(object); };
    kinds_.push_back(info);
  }
  template <class T>
  void add(Hooks<T> made) {
    waylay_hooks_info info{};
    info.size = sizeof info;
    info.name = made.name;
    info.about = made.about;
    info.create = []() -> void* {
      try {
        return static_cast<HooksBase*>(new T());
      } catch (...) {
        return nullptr;
      }
    };
    info.destroy = [](void* self) { delete static_cast<HooksBase*>(self); };
    info.on_load = [](void* self, const waylay_contained_info* test) noexcept { of(self).OnTestLoad(seen(test)); };
    info.on_unload = [](void* self, const waylay_contained_info* test) noexcept { of(self).OnTestUnload(seen(test)); };
    info.on_start = [](void* self, const waylay_contained_info* test, uint32_t worker) noexcept {
      of(self).OnTestStart(seen(test), worker);
    };
    info.on_stop = [](void* self, const waylay_contained_info* test, uint32_t worker, const waylay_ran* ran) noexcept {
      of(self).OnTestStop(seen(test), worker, *ran);
    };
    hooks_.push_back(info);
  }
  static HooksBase& of(void* self) { return *static_cast<HooksBase*>(self); }
  static Contained seen(const waylay_contained_info* test) { return {test->name, test->share, test->state}; }

  waylay_plugin_info info_{};
  std::deque<TestEntry> tests_;
  std::deque<waylay_kind_info> kinds_;
  std::vector<const waylay_test_info*> test_pointers_;
  std::vector<const waylay_kind_info*> kind_pointers_;
  std::deque<waylay_hooks_info> hooks_;
  std::vector<const waylay_hooks_info*> hook_pointers_;
};

}  // namespace waylay

/// Exports a plugin: its name, then its tests and shared kinds.
#define WAYLAY_PLUGIN(plugin_name, ...)                                                                 \
  /* Never destroyed: a process that ends while a test hangs must not pull the table away under it. */    \
  static waylay::PluginTable& waylay_plugin_table() {                                                     \
    static waylay::PluginTable& table = *new waylay::PluginTable(plugin_name, __VA_ARGS__);               \
    return table;                                                                                         \
  }                                                                                                       \
  extern "C" WAYLAY_EXPORT const waylay_plugin_info* WaylayPlugin(void) {                                 \
    return waylay_plugin_table().info();                                                                  \
  }                                                                                                       \
  extern "C" WAYLAY_EXPORT waylay_instance* CreateInstance(const waylay_create_args* args) {              \
    return waylay_plugin_table().create(args);                                                            \
  }                                                                                                       \
  extern "C" WAYLAY_EXPORT void DestroyInstance(waylay_instance* instance) {                              \
    waylay::PluginTable::destroy(instance);                                                               \
  }

#endif
