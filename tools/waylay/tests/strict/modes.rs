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
minimize = '5s'
[[scenario.test]]
plugin = './libmodes.so'
name = 'lost'
workers = 1
";

#[test]
fn what_was_seen_freely_first_has_a_schedule_and_its_rates_stand_side_by_side() {
    let place = Workplace::with(CONFIG);
    let file = place.write("modes.cpp", SOURCE);
    let include = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../framework/abi/include");
    let mut compile = Command::new("g++");
    compile.args(["-std=c++17", "-O1", "-g", "-fPIC", "-shared", "-pthread", "-include", "mutex", "-I"]);
    let built = compile.arg(include).arg(&file).arg("-o").arg(place.path().join("libmodes.so")).status();
    assert!(built.expect("a compiler").success());

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
