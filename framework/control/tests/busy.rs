//! Threads that wait for another in a way that looks like work, one alone or several among themselves: whatever the strategy,
//! the one they wait for gets to run, long before the limit at which a run counts as endless. What is endless stays so.
//!
//! Runs are functions of their number, so these tests count the same every time.

mod harness;

use harness::{Program, parameters};
use waylay_control_protocol::{Ending, Instrumentation, Level, Settings, Switching};

/// Strategies by priority lower a thread after a thousand steps and some ten more, one after the other.
const BY_PRIORITY: u64 = 6_000;
/// Searches have it yield after 20,000 steps; three threads may do that.
const SEARCH: u64 = 70_000;

fn all_end(program: &Program, strategy: &str, runs: u64, most: u64) {
    let mut server = program.serve_with(Instrumentation::new(Level::Atomics, true));
    for run in 0..runs {
        let mut settings = Settings::new(Switching::Carrier, 9, run);
        settings.max_steps = 1_000_000;
        let outcome = server.run(settings, &parameters(strategy, 4, 60, 2));
        assert!(
            outcome.code == Some(0) && outcome.ending == Ending::Exited && outcome.steps < most,
            "{strategy}, run {run}: {} steps, {:?}, {}",
            outcome.steps,
            outcome.ending,
            outcome.text
        );
    }
}

#[test]
fn a_thread_that_changes_values_while_it_waits_lets_others_run() {
    let built = Program::build("busy.c");
    for mode in ["counts", "exchanges", "scatters", "locks", "hands_over"] {
        for politeness in ["none", "pause", "yield"] {
            for waiters in ["1", "2"] {
                if (mode, waiters) == ("hands_over", "1") {
                    continue;
                }
                let program = built.with(&[mode, politeness, waiters]);
                all_end(&program, "pct", 12, BY_PRIORITY);
                all_end(&program, "rpro", 6, BY_PRIORITY);
                if politeness == "none" {
                    for search in ["dfs", "pb", "db"] {
                        all_end(&program, search, 1, SEARCH);
                    }
                }
            }
        }
    }
}

#[test]
fn so_do_threads_that_keep_each_other_busy_in_other_languages() {
    for file in ["busy.cpp", "busy.rs"] {
        let program = Program::build(file);
        all_end(&program, "pct", 24, BY_PRIORITY);
        all_end(&program, "pos", 12, SEARCH);
        all_end(&program, "random", 12, SEARCH);
    }
}

#[test]
fn what_is_endless_is_reported() {
    let program = Program::build("busy.c").with(&["endless", "none", "2"]);
    let mut server = program.serve_with(Instrumentation::new(Level::Atomics, true));
    for strategy in ["pct", "pb", "random"] {
        let mut settings = Settings::new(Switching::Carrier, 9, 0);
        settings.max_steps = 200_000;
        let outcome = server.run(settings, &parameters(strategy, 4, 60, 2));
        assert_eq!(outcome.ending, Ending::StepLimit, "{strategy}: {outcome:#?}");
    }
}

/// Nobody else can run, so that nobody is waited for: twice the steps that make a livelock are none. A lock that is never free
/// is one.
#[test]
fn a_thread_that_locks_and_unlocks_alone_is_at_work() {
    let program = Program::build("alone.c");
    let run = |rounds: &str| {
        let mut server = program.with(&[rounds]).serve_with(Instrumentation::new(Level::Atomics, true));
        let mut settings = Settings::new(Switching::Carrier, 9, 0);
        settings.max_steps = 1_000_000;
        server.run(settings, &parameters("pct", 2, 60, 2))
    };
    assert!(run("100000").assert_clean().steps > 200_000);
    let stuck = run("-1");
    assert_eq!(stuck.ending, Ending::Livelock, "{stuck:#?}");
    assert!(stuck.text.contains("livelock: "), "{stuck:#?}");
}
