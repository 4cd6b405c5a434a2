//! Lock-free programs with a known bug, and their correct twins, as they come from the compiler: unmodified.
//!
//! Each bug has depth 2 or 3, in programs of 2 or 3 threads and some tens of steps; the number of schedules within which it
//! has to be found is stated for each. Runs are a pure function of the seed, which is fixed, so nothing here fails by
//! chance. A twin must be clean for as many schedules.

mod support;

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::Workplace;

fn build(place: &Workplace, file: &str, fixed: bool) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lockfree").join(file);
    let program = place.path().join(format!("{file}.{}", if fixed { "fixed" } else { "bug" }));
    let (compiler, options, twin): (_, &[&str], &[&str]) = match file.rsplit_once('.') {
        Some((_, "rs")) => ("rustc", &["--edition=2024", "-O", "-g", "-Aunexpected_cfgs"], &["--cfg=fixed"]),
        Some((_, "cpp")) => ("g++", &["-std=c++20", "-O1", "-g", "-pthread"], &["-DFIXED"]),
        _ => ("gcc", &["-std=gnu17", "-O1", "-g", "-pthread"], &["-DFIXED"]),
    };
    let mut command = Command::new(compiler);
    command.args(options).args(if fixed { twin } else { &[] }).arg("-o").arg(&program).arg(source);
    let built = command.output().expect("a compiler is installed");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    program.to_str().expect("a plain path").to_owned()
}

/// Finds the bug of a program within so many schedules and nothing in its twin.
fn told_apart(file: &str, runs: u64, strategy: &str) {
    let place = Workplace::new();
    for fixed in [false, true] {
        let program = build(&place, file, fixed);
        let runs = runs.to_string();
        let options =
            ["explore", "--json", "--quiet", "--seed", "8", "--level", "memory", "--strategy", strategy];
        let ran =
            place.waylay(&[&options[..], &["--stop-on-first", "--runs", &runs, "--", &program]].concat());
        let summary: Value =
            serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:#?}"));
        assert_eq!(ran.status.code(), Some(i32::from(!fixed)), "{file}, fixed: {fixed}: {ran:#?}");
        assert_eq!(summary["refused"].as_u64().map(|refused| refused < 2000), Some(true), "{ran:#?}");
        if fixed {
            assert_eq!(summary["partly_controlled"], 0, "{ran:#?}");
        } else {
            assert_eq!(summary["kind"], "assert", "{file}: {ran:#?}");
            assert_eq!(summary["found"][0]["confirmed"], true, "{file}: {ran:#?}");
        }
    }
}

#[test]
fn locks_made_of_loads_and_stores() {
    told_apart("peterson.c", 1500, "pct");
    told_apart("dekker.c", 500, "random");
}

#[test]
fn a_torn_read_and_a_count_that_reaches_zero_twice() {
    told_apart("seqlock.c", 300, "pct");
    told_apart("refcount.c", 100, "pct");
    told_apart("shared.rs", 800, "pct");
}

#[test]
fn stacks_deques_and_queues() {
    told_apart("treiber.cpp", 1000, "pct");
    told_apart("deque.cpp", 100, "pct");
    told_apart("queue.rs", 800, "pct");
}

#[test]
fn published_too_early_protected_too_late_or_not_at_all() {
    told_apart("once.cpp", 200, "pct");
    told_apart("hazard.cpp", 200, "pct");
    told_apart("racy.rs", 800, "pct");
}
