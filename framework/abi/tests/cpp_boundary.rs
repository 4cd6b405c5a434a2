//! What the C++ adapter makes of a test: the statuses that the host sees, and failures whose stack is that of the throw.

mod compilers;

use compilers::{Language, installed};
use std::process::Command;

/// A plugin with a host of its own in `main`; it prints what the host saw.
const PROGRAM: &str = r#"
#include "waylay.hpp"
#include <cstdio>
#include <stdexcept>
#include <unwind.h>

// Unwinding needs a stack that the optimiser left alone.
#define APART __attribute__((noinline))

APART static void throws_here(int how) {
  if (how == 1) throw std::runtime_error("one");
  if (how == 2) throw 7;
  if (how == 3) std::string("x").at(9) = 'y';
}

struct Thrower : waylay::TestBase {
  waylay::Distribution how;
  void OnTestStart() override {
    how = distribution("how");
    if (!how) throw std::logic_error("no distribution");
  }
  void TestMain(waylay::Worker& worker) override {
    const int64_t now = worker.draw_int(how);
    if (now == 4) { worker.done(); return; }
    if (now == 5) { worker.check(false, "five"); return; }
    if (now == 6) {
      try { throws_here(1); } catch (const std::exception&) {}
      return;
    }
    throws_here(static_cast<int>(now));
  }
  void OnTestEnd() override { throw std::string("end"); }
};
struct Unmade : waylay::TestBase {
  Unmade() { throw std::runtime_error("unmade"); }
  void TestMain(waylay::Worker&) override {}
};
struct Thing { int number = 3; };

WAYLAY_PLUGIN("thrower", waylay::test<Thrower>("thrower", "a").param("how", "1"), waylay::test<Unmade>("unmade", "b"),
              waylay::kind<Thing>("thing", "c"))

static int64_t next = 0;
static void fail(waylay_context*, const waylay_failure* failure) {
  bool through = false;
  for (size_t i = 0; i < failure->frame_count; i++) {
    void* in = _Unwind_FindEnclosingFunction(reinterpret_cast<void*>(failure->frames[i] - 1));
    through |= in == reinterpret_cast<void*>(&throws_here);
  }
  std::printf("fail %u %.*s%s\n", failure->kind, static_cast<int>(failure->message_len), failure->message,
              through ? " through throws_here" : "");
}
static const waylay_distribution* named(waylay_context*, const char* name) {
  return std::string_view(name) == "how" ? reinterpret_cast<const waylay_distribution*>(&next) : nullptr;
}
static int64_t draw(waylay_context*, const waylay_distribution*) { return next; }

int main() {
  waylay_services services{};
  services.size = sizeof services;
  services.fail = fail;
  services.distribution = named;
  services.draw_int = draw;
  waylay_create_args args{};
  args.size = sizeof args;
  args.abi_version = WAYLAY_ABI_VERSION;
  args.services = &services;
  args.test = "unmade";
  std::printf("made %d\n", CreateInstance(&args) != nullptr);
  args.test = "nobody";
  std::printf("made %d\n", CreateInstance(&args) != nullptr);
  args.test = "thrower";
  waylay_instance* live = CreateInstance(&args);
  std::printf("start %d\n", live->OnTestStart(live));
  for (next = 0; next <= 6; next++) std::printf("main %d\n", live->TestMain(live, nullptr));
  live->OnTestEnd(live);
  DestroyInstance(live);
  const waylay_kind_info* kind = WaylayPlugin()->kinds[0];
  void* thing = kind->create();
  std::printf("thing %d\n", static_cast<Thing*>(thing)->number);
  kind->destroy(thing);
}
"#;

const EXPECTED: &str = "\
fail 2 C++ exception std::runtime_error: unmade
made 0
fail 0 this plugin has no test named nobody
made 0
start 0
main 0
fail 2 C++ exception std::runtime_error: one through throws_here
main 1
fail 2 C++ exception int through throws_here
main 1
fail 2 C++ exception std::out_of_range: RANGE through throws_here
main 1
main 2
fail 0 five
main 1
main 0
fail 2 C++ exception std::string: end
thing 3
";

#[test]
fn exceptions_become_failures_with_the_stack_of_the_throw() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("thrower.cpp");
    std::fs::write(&source, PROGRAM).unwrap();
    for compiler in installed(Language::Cpp) {
        // Not -O2: there GCC moves the throws away from their function, and they count as a function of their own.
        for optimised in ["-O0", "-O1"] {
            let program = folder.path().join("thrower");
            compiler.compile(Language::Cpp, &source, &program, &[optimised]);
            let output = Command::new(&program).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            // The words of the library's own exception are not ours to expect.
            let seen: String = text.lines().map(without_library_words).collect();
            assert_eq!(seen, EXPECTED, "{compiler} {optimised}");
            assert!(output.status.success());
        }
    }
}

fn without_library_words(line: &str) -> String {
    match line.split_once("std::out_of_range: ") {
        Some((before, after)) => {
            let through = if after.ends_with(" through throws_here") { " through throws_here" } else { "" };
            format!("{before}std::out_of_range: RANGE{through}\n")
        }
        None => format!("{line}\n"),
    }
}
