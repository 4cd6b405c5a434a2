//! Lock-free programs with a known bug, and their correct twins, as they come from the compiler: unmodified.
//!
//! Each bug has depth 2 or 3, in programs of 2 or 3 threads and some tens of steps. For each a share of schedules that fail
//! is stated, half of what 1,500 schedules showed; it has to be found within as many schedules as would all miss it with a
//! probability below 1e-6, and the twin must be clean for as many. Runs are a pure function of the seed, which is fixed.

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

/// Schedules of which a share fails that all pass with a probability below 1e-6.
fn schedules(failing: f64) -> u64 {
    (1e-6_f64.ln() / (1.0 - failing).ln()).ceil() as u64
}

/// Finds the bug of a program, of whose schedules at least this share fails, and nothing in its twin.
fn told_apart(file: &str, failing: f64, strategy: &str) {
    let place = Workplace::new();
    let runs = schedules(failing);
    for fixed in [false, true] {
        let program = build(&place, file, fixed);
        let runs = runs.to_string();
        let options = [
            "explore",
            "--json",
            "--quiet",
            "--seed",
            "8",
            "--minimize",
            "off",
            "--level",
            "memory",
            "--strategy",
            strategy,
        ];
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
    told_apart("peterson.c", 0.15, "pos");
    told_apart("dekker.c", 0.04, "random");
}

#[test]
fn a_torn_read_and_a_count_that_reaches_zero_twice() {
    told_apart("seqlock.c", 0.16, "pos");
    told_apart("refcount.c", 0.15, "pos");
    told_apart("shared.rs", 0.011, "pos");
}

#[test]
fn stacks_deques_and_queues() {
    told_apart("treiber.cpp", 0.0045, "portfolio");
    told_apart("deque.cpp", 0.05, "pos");
    told_apart("queue.rs", 0.008, "pos");
}

#[test]
fn published_too_early_protected_too_late_or_not_at_all() {
    told_apart("once.cpp", 0.038, "pos");
    told_apart("hazard.cpp", 0.033, "pos");
    told_apart("racy.rs", 0.008, "pos");
}
