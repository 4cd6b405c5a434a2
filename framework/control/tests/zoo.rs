//! Known bugs of known depth: found by PCT at least as often as its guarantee says, and never in the correct twin.
//!
//! A run is a function of its number, so these tests cannot flicker: they count the same runs every time. The
//! guarantee is the one of PCT, 1/(n·k^(d−1)), with n and k as measured.

mod harness;

use harness::zoo::{ANIMALS, detect, repeat};
use harness::{Program, parameters};
use waylay_control_protocol::{Settings, Switching};

/// Enough to tell a frequency from its promise for every animal; `cargo bench -p waylay-control --bench evidence` makes
/// 20,000 and 100,000, and prints them.
const RUNS: u64 = 1000;
const RUNS_OF_TWINS: u64 = 10_000;

#[test]
fn pct_finds_each_bug_at_least_as_often_as_it_promises() {
    for (file, name, depth) in ANIMALS {
        let detection = detect(file, name, depth, RUNS);
        assert!(detection.is_kept(), "{file} {name}: {detection:#?}");
    }
}

#[test]
fn correct_twins_never_fail() {
    for (file, name, _) in ANIMALS {
        for strategy in ["pct:depth=3", "random", "pos"] {
            let tally = repeat(file, name, "fixed", strategy, RUNS_OF_TWINS / 3);
            assert_eq!(tally.failures, 0, "{file} {name} {strategy}: {tally:#?}");
        }
    }
}

#[test]
fn baton_and_carrier_find_the_same() {
    for (file, name, depth) in ANIMALS {
        let program = Program::build(file);
        let strategy = parameters(&format!("pct:depth={depth}"), 4, 40, depth);
        let mut baton = program.with(&[name]).serve();
        let mut carrier = program.with(&[name]).serve();
        for run in 0..40 {
            let first = baton.run(Settings::new(Switching::Baton, 7, run), &strategy);
            let second = carrier.run(Settings::new(Switching::Carrier, 7, run), &strategy);
            assert_eq!((first.code, first.ending), (second.code, second.ending), "{name} run {run}");
            assert_eq!(first.schedule, second.schedule, "{name} run {run}");
        }
    }
}
