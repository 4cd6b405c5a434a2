//! The promise as a promise: bugs are found at least as often as the summary of the same runs says. `cargo bench -p
//! waylay-schedule --bench promises` makes 20,000 runs of each, and prints them.

mod kept;
mod model;

use kept::{cases, late, measure};
use model::Op::*;
use model::{Program, execute, run_once};
use waylay_schedule::promise::{Aimed, promises};
use waylay_schedule::{Run, RunParameters, Seed, Spec, Strategy};

const RUNS: u64 = 1000;

#[test]
fn every_promise_by_depth_is_kept() {
    for case in cases() {
        let depth = case.depth;
        let strategies =
            ["pct".to_owned(), format!("pct:depth={depth}"), format!("rpro:depth={depth},radius=500")];
        for (strategy, runs) in strategies
            .map(|strategy| (strategy, RUNS))
            .into_iter()
            .chain([("portfolio".to_owned(), 2 * RUNS)])
        {
            let measured = measure(&case, &strategy, 7, runs);
            assert!(measured.is_kept(), "{} under {strategy}: {measured:?}", case.name);
        }
    }
}

/// The number of steps is learned although most of them happen while another thread could run and does not, and although
/// nothing says at first that they are work: change points reach the end of the run from the second on.
#[test]
fn long_runs_are_learned_as_they_are() {
    let program = late(20_000);
    let most = program.steps();
    for seed in 0..10 {
        for spec in ["pct:depth=2", "pct", "rpro:depth=2"] {
            let mut strategy = spec.parse::<Spec>().unwrap().build();
            let mut reach = 0;
            for index in 0..8 {
                let run = Run { seed: Seed(seed), index };
                let (parameters, _) = run_once(&program, &mut strategy, run).unwrap();
                reach = parameters.steps;
            }
            assert!(
                (most - 4..most + most / 2).contains(&reach),
                "{spec}, seed {seed}: k = {reach} of {most}"
            );
        }
    }
}

/// What a thread does while it spins is not the program's length: runs do not grow with their number.
#[test]
fn spinning_does_not_make_runs_longer_and_longer() {
    for case in cases().into_iter().filter(|case| case.name.contains("spin")) {
        let mut strategy = "pct".parse::<Spec>().unwrap().build();
        let mut last = 0;
        for index in 0..3000 {
            let run = Run { seed: Seed(5), index };
            let (parameters, execution) = run_once(&case.program, &mut strategy, run).unwrap();
            assert!(!execution.cut);
            last = parameters.steps.max(last);
        }
        assert!(last < 60, "{}: k = {last} of a program with about 12 steps", case.name);
    }
}

/// Runs of one thread promise nothing.
#[test]
fn nothing_is_promised_where_nothing_was_scheduled() {
    let alone = Program::flat(vec![vec![Local, Local, FailIf(0, 0)]]);
    let mut strategy = Spec::default().build();
    let mut aimed = Aimed::default();
    for index in 0..200 {
        let (parameters, execution) = run_once(&alone, &mut strategy, Run { seed: Seed(1), index }).unwrap();
        assert!(execution.failed);
        aimed.take(&parameters);
    }
    assert!(promises(&RunParameters::of(Spec::default().to_string()), 1, &aimed).is_empty());
}

/// FNV-1a.
fn mixed(hash: u64, value: u64) -> u64 {
    value
        .to_le_bytes()
        .iter()
        .fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Seed, number and parameters of a run decide its schedule, and a failure that was stored by an earlier version is made
/// again from them. The number below is that of the schedules that runs by priority had before their code was divided.
#[test]
fn stored_runs_by_priority_have_the_schedules_they_had() {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    for case in cases().into_iter().filter(|case| case.program.steps() < 300) {
        for spec in ["pct", "pct:phases=idle", "pct:final-wait=off", "rpro:radius=7"] {
            let spec: Spec = spec.parse().unwrap();
            let mut strategy = spec.build();
            for (index, (depth, steps)) in
                [(1, 0), (1, 9), (2, 9), (3, 14), (4, 30)].repeat(12).into_iter().enumerate()
            {
                let bare = index % 2 == 0;
                let parameters = RunParameters { depth, steps, bare, ..RunParameters::of(spec.to_string()) };
                strategy.begin(Run { seed: Seed(11), index: index as u64 }, &parameters);
                let execution = execute(&case.program, &mut strategy);
                hash =
                    execution.order().into_iter().fold(hash, |hash, thread| mixed(hash, u64::from(thread)));
                hash = mixed(hash, u64::MAX);
            }
        }
    }
    assert_eq!(hash, 0x6557_8944_40b6_5d43, "{hash:#x}");
}
