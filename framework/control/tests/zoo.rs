//! Known bugs of known depth: found by PCT at least as often as its guarantee says, and never in the correct twin.
//!
//! A run is a function of its number, so these tests cannot flicker: they count the same runs every time. The
//! guarantee is the one of PCT, 1/(n·k^(d−1)), with n and k as measured.

mod harness;

use harness::{Program, Server, parameters};
use waylay_control_protocol::{Ending, Settings, Switching};

const RUNS: u64 = 300;
const SEED: u64 = 7;

/// Name and depth.
const ZOO: [(&str, u32); 16] = [
    ("order", 1),
    ("atomicity", 2),
    ("two_locks", 2),
    ("three_locks", 3),
    ("lost_wake_up", 2),
    ("missed_signal", 1),
    ("aba", 3),
    ("double_checked", 2),
    ("philosophers", 3),
    ("writer_starves", 2),
    ("barrier_misuse", 1),
    ("semaphore_misuse", 2),
    ("once_misuse", 2),
    ("no_loop", 2),
    ("use_after_join", 1),
    ("overrun", 2),
];

/// Failures among the runs, and the greatest n and k seen.
fn count(server: &mut Server, switching: Switching, strategy: &str, runs: u64) -> (u64, u32, u64) {
    let (mut failures, mut threads, mut steps) = (0, 0, 0);
    for run in 0..runs {
        let outcome = server.run(Settings::new(switching, SEED, run), strategy);
        let failed = match (outcome.ending, outcome.code) {
            (Ending::Deadlock, _) | (Ending::Exited, Some(1)) => 1,
            (Ending::Exited, Some(0)) => 0,
            _ => panic!("run {run}: {outcome:#?}"),
        };
        failures += failed;
        threads = threads.max(outcome.threads);
        steps = steps.max(outcome.steps);
    }
    (failures, threads, steps)
}

#[test]
fn pct_finds_each_bug_at_least_as_often_as_it_promises() {
    let program = Program::build("zoo.c");
    let mut missed = Vec::new();
    for (name, depth) in ZOO {
        let mut server = program.with(&[name]).serve();
        let (_, threads, steps) = count(&mut server, Switching::Carrier, "", 20);
        let strategy = parameters(&format!("pct:depth={depth}"), threads, steps, depth);
        let (failures, ..) = count(&mut server, Switching::Carrier, &strategy, RUNS);
        let promised = 1.0 / (f64::from(threads) * (steps as f64).powi(depth as i32 - 1));
        println!("{name}: {failures} of {RUNS}, promised {:.2}", promised * RUNS as f64);
        if failures == 0 || (failures as f64) < promised * RUNS as f64 {
            missed.push((name, failures));
        }
    }
    assert_eq!(missed, []);
}

#[test]
fn correct_twins_never_fail() {
    let program = Program::build("zoo.c");
    for (name, _) in ZOO {
        let mut server = program.with(&[name, "fixed"]).serve();
        for strategy in ["random", "pct:depth=3", "pos"] {
            let strategy = parameters(strategy, 4, 40, 3);
            let (failures, ..) = count(&mut server, Switching::Carrier, &strategy, RUNS / 6);
            assert_eq!(failures, 0, "{name} {strategy}");
        }
    }
}

#[test]
fn baton_and_carrier_find_the_same() {
    let program = Program::build("zoo.c");
    for (name, depth) in ZOO {
        let strategy = parameters(&format!("pct:depth={depth}"), 4, 40, depth);
        let mut baton = program.with(&[name]).serve();
        let mut carrier = program.with(&[name]).serve();
        for run in 0..40 {
            let first = baton.run(Settings::new(Switching::Baton, SEED, run), &strategy);
            let second = carrier.run(Settings::new(Switching::Carrier, SEED, run), &strategy);
            assert_eq!((first.code, first.ending), (second.code, second.ending), "{name} run {run}");
            assert_eq!(first.schedule, second.schedule, "{name} run {run}");
        }
    }
}
