//! A failure that is seen in several modes: one failure, whose strict occurrence leads, with its rates side by side.

use std::process::Command;

use serde_json::Value;

use crate::support::Workplace;

const SOURCE: &str = "
#include <chrono>
#include <thread>
#include <waylay.hpp>
static int counter;
static std::mutex lock;
class Lost : public waylay::TestBase {
 public:
  void TestMain(waylay::Worker& worker) override {
    counter = 0;
    auto add = [] {
      lock.lock();
      int before = counter;
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      lock.lock();
      counter = before + 1;
      lock.unlock();
    };
    std::thread one(add), other(add);
    one.join();
    other.join();
    worker.check(counter == 2, \"an update was lost\");
  }
};
WAYLAY_PLUGIN(\"modes\", waylay::test<Lost>(\"lost\", \"two threads, one counter\"))
";

/// Freely it is lost nearly every time, and first.
const CONFIG: &str = "seed = '0x5eed'
[defaults]
max-failures = 3
[[scenario]]
name = 'first'
mode = 'free'
[[scenario.test]]
plugin = './libmodes.so'
name = 'lost'
workers = 1
iterations = 20
[[scenario]]
name = 'then'
mode = 'strict'
runs = 200
[[scenario.test]]
plugin = './libmodes.so'
name = 'lost'
workers = 1
";

fn build(place: &Workplace, source: &str) {
    let file = place.write("modes.cpp", source);
    let include = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../framework/abi/include");
    let mut compile = Command::new("g++");
    compile.args(["-std=c++17", "-O1", "-g", "-fPIC", "-shared", "-pthread", "-include", "mutex", "-I"]);
    let built = compile.arg(include).arg(&file).arg("-o").arg(place.path().join("libmodes.so")).status();
    assert!(built.expect("a compiler").success());
}

#[test]
fn what_was_seen_freely_first_has_a_schedule_and_its_rates_stand_side_by_side() {
    let place = Workplace::with(CONFIG);
    build(&place, SOURCE);
    let ran = place.run(1, &[]);
    let failure = ran.failure("modes", "lost");
    assert_eq!(failure.json["scenarios"]["first"], 3, "{:#}", failure.json);
    assert_eq!(failure.json["scenarios"]["then"], 3, "{:#}", failure.json);
    assert_eq!(failure.json["occurrences"][0]["scenario"], "then", "{:#}", failure.json);
    assert!(failure.json["cause"].is_object(), "{:#}", failure.json);
    let folder = failure.folder.to_str().expect("a plain path");
    let shown: Value = place.waylay(&["show", folder, "--json"]).json();
    let rates = shown["rates"].as_array().expect("rates");
    let modes: Vec<_> = rates.iter().map(|rate| (&rate["mode"], &rate["reproduced"])).collect();
    assert_eq!(modes, [(&"free".into(), &3.into()), (&"strict".into(), &3.into())], "{shown:#}");
    let side_by_side = format!("free 3 in {} · strict 3 in {}", rates[0]["runs"], rates[1]["runs"]);
    let text = place.waylay(&["show", folder]).stdout;
    assert!(text.contains(&format!("modes     {side_by_side}\n")), "{side_by_side}: {text}");
    assert!(text.contains("timeline.svg") || failure.folder.join("timeline.svg").is_file(), "{text}");
    assert!(ran.stderr.contains(&side_by_side), "{side_by_side}: {}", ran.stderr);
    let page = place.path().join("report.html");
    place.waylay(&["report", "--html", page.to_str().expect("a plain path")]);
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.contains(&side_by_side), "{side_by_side}");
    // What can be done with a failure of strict mode can be done with it.
    let again = place.waylay(&["replay", folder, "--times", "3", "--json"]).json();
    assert_eq!((&again["reproduced"], &again["diverged"]), (&3.into(), &0.into()), "{again:#}");
    assert_eq!(place.waylay(&["minimize", folder]).code(), Some(0));
}

/// Only the first scenario.
fn freely() -> &'static str {
    CONFIG.split_once("[[scenario]]\nname = 'then'").map(|(first, _)| first).expect("two scenarios")
}

#[test]
fn what_was_only_seen_freely_is_hunted_down() {
    let place = Workplace::with(freely());
    build(&place, SOURCE);
    let ran = place.run(1, &[]);
    let failure = ran.failure("modes", "lost");
    assert_eq!(failure.kind(), "assert", "{:#}", failure.json);
    let folder = failure.folder.to_str().expect("a plain path");
    assert!(!failure.folder.join("schedule.bin").exists());
    assert_eq!(place.waylay(&["minimize", folder]).code(), Some(2), "it has no schedule yet");
    let hunted = place.waylay(&["hunt", folder, "--runs", "400", "--seed", "1", "--json"]);
    assert_eq!((hunted.code(), &hunted.json()["found"]), (Some(1), &true.into()), "{hunted:#?}");
    assert!(hunted.stderr.contains("it has a schedule now"), "{hunted:#?}");
    let again = place.waylay(&["replay", folder, "--times", "3", "--json"]).json();
    assert_eq!((&again["reproduced"], &again["diverged"]), (&3.into(), &0.into()), "{again:#}");
    let shown = place.waylay(&["show", folder]).stdout;
    assert!(shown.contains("   cause     depth "), "{shown}");
    let more = place.waylay(&["hunt", folder]);
    assert!(more.code() == Some(2) && more.stderr.contains("has a schedule already"), "{more:#?}");
}

/// Two threads that take two locks in opposite order, each once the other has its first: freely that is so every time.
const CROSSED: &str = "
#include <atomic>
#include <chrono>
#include <thread>
#include <waylay.hpp>
static std::mutex left, right;
class Crossed : public waylay::TestBase {
 public:
  void TestMain(waylay::Worker&) override {
    std::thread other([] {
      right.lock();
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      left.lock();
      left.unlock();
      right.unlock();
    });
    left.lock();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    right.lock();
    right.unlock();
    left.unlock();
    other.join();
  }
};
WAYLAY_PLUGIN(\"modes\", waylay::test<Crossed>(\"crossed\", \"two threads, two locks\"))
";

#[test]
fn a_hang_that_was_only_seen_freely_is_hunted_down() {
    let config = freely().replace("'lost'", "'crossed'").replace("iterations = 20", "iterations = 200");
    let place = Workplace::with(&config.replace("[defaults]", "[defaults]\nhang-timeout = '1s'"));
    build(&place, CROSSED);
    let ran = place.run(1, &[]);
    let failure = ran.failure("modes", "crossed");
    assert_eq!(failure.kind(), "deadlock", "{:#}", failure.json);
    let folder = failure.folder.to_str().expect("a plain path");
    let hunted = place.waylay(&["hunt", folder, "--runs", "400", "--seed", "1", "--json"]);
    assert_eq!((hunted.code(), &hunted.json()["found"]), (Some(1), &true.into()), "{hunted:#?}");
    let again = place.waylay(&["replay", folder, "--times", "3", "--json"]).json();
    assert_eq!((&again["reproduced"], &again["diverged"]), (&3.into(), &0.into()), "{again:#}");
    let shown = place.waylay(&["show", folder]).stdout;
    assert!(shown.contains("cycle") || shown.contains("deadlock"), "{shown}");
}
