//! Runs that begin from a snapshot are the runs that a fork would have been: same end, same steps, same schedule, same
//! output, seed by seed. What cannot be restored is given back, with a reason.
//!
//! Here some seeds of each program are compared; `cargo bench -p waylay-control --bench restart` compares ten thousand.

mod harness;

use harness::Program;
use harness::restored::{Comparison, compare, compare_with};
use harness::zoo::ANIMALS;
use waylay_control_protocol::{Instrumentation, Level};

/// Runs of each program.
const RUNS: u64 = 30;

/// All runs are restored and are the same as forked ones.
#[track_caller]
fn is_restored(program: &Program) -> Comparison {
    let found = compare(program, RUNS);
    assert!(found.differences.is_empty() && found.given_back.is_empty(), "{found:#?}");
    assert_eq!(found.restored, RUNS);
    found
}

/// All runs are given back, for this reason.
#[track_caller]
fn is_given_back(program: &Program, why: &str) {
    let found = compare(program, 3);
    assert_eq!(found.given_back.get(why), Some(&3), "{found:#?}");
}

fn animals(file: &str) {
    let program = Program::build(file);
    let mut failed = 0;
    for (_, name, _) in ANIMALS.iter().filter(|(of, _, _)| *of == file) {
        failed += is_restored(&program.with(&[name])).failed;
    }
    // Bugs are what runs differ by: a zoo in which none shows compares little.
    assert!(failed > 0);
}

#[test]
fn bugs_in_c() {
    animals("zoo.c");
}

#[test]
fn bugs_in_cpp() {
    animals("zoo.cpp");
}

#[test]
fn bugs_in_rust() {
    animals("zoo.rs");
}

#[test]
fn all_families_of_calls() {
    let program = Program::build("families.c");
    for name in [
        "mutexes",
        "robust",
        "conditions",
        "rwlocks",
        "semaphores",
        "barriers",
        "spin",
        "once",
        "sleeps",
        "joins",
        "detached",
        "c11",
    ] {
        is_restored(&program.with(&[name]));
    }
}

#[test]
fn standard_libraries() {
    for file in ["standard_library.cpp", "standard_library.rs"] {
        is_restored(&Program::build(file));
    }
}

#[test]
fn many_threads_and_threads_that_come_and_go() {
    let program = Program::build("churn.c");
    for arguments in [["40", "40"], ["60", "3"]] {
        is_restored(&program.with(&arguments));
    }
}

#[test]
fn pipes_clocks_streams_and_ends() {
    let program = Program::build("hazards.c");
    for name in [
        "pipe",
        "full_pipe",
        "polling",
        "event_descriptor",
        "fault_handler",
        "alternate_stacks",
        "processor_clocks",
        "clock_loop",
        "processors",
        "randomness",
        "locked_stream",
        "exit_from_thread",
        "main_returns",
    ] {
        is_restored(&program.with(&[name]));
    }
}

#[test]
fn masks_cancellation_and_threads_that_end_from_within() {
    let program = Program::build("hazards.c");
    for name in [
        "signal_masks",
        "cancellation",
        "cancelled_before_waiting",
        "leaving_from_within",
        "leaving_unnoticed",
        "main_leaves",
        "main_is_joined",
    ] {
        is_restored(&program.with(&[name]));
    }
}

/// What an exploration does unless it is told otherwise: instructions of the program are steps. The memory level is for
/// programs whose accesses do not depend on addresses: Rust looks threads up in a tree by address, in which those that come
/// and go lie elsewhere.
#[test]
fn patched_programs() {
    for (file, arguments, levels) in [
        ("zoo.rs", &["lost_update"][..], &[Level::Atomics, Level::Memory][..]),
        ("standard_library.rs", &[], &[Level::Atomics]),
        ("standard_library.cpp", &[], &[Level::Atomics, Level::Memory]),
        ("zoo.c", &["order"], &[Level::Atomics, Level::Memory]),
        ("hazards.c", &["leaving_from_within"], &[Level::Atomics, Level::Memory]),
    ] {
        let program = Program::build(file).with(arguments);
        for &level in levels {
            let found = compare_with(&program, RUNS, Some(Instrumentation::new(level, true)));
            assert!(
                found.differences.is_empty() && found.given_back.is_empty(),
                "{file} {level}: {found:#?}"
            );
        }
    }
}

#[test]
fn small_programs() {
    for (file, argument) in [("order.c", ""), ("two_locks.c", ""), ("two_locks.c", "same"), ("yields.c", "5")]
    {
        is_restored(&Program::build(file).with(&[argument]));
    }
}

#[test]
fn what_cannot_be_restored_is_given_back() {
    const HOME: &str = "needs a thread to be on its own kernel thread: for a signal, its mask, or its end";
    let program = Program::build("hazards.c");
    for (name, why) in [
        ("forking", "starts a process"),
        ("from_outside", "starts a process"),
        ("child_with_pipe", "starts a process"),
        ("shell", "waits in the kernel"),
        ("kill_thread", HOME),
        ("handler_posts", HOME),
        ("credentials", HOME),
    ] {
        is_given_back(&program.with(&[name]), why);
    }
    is_given_back(&Program::build("interrupted.c"), "sets a timer");
}
