//! Spinning threads do not stop a run: PCT lowers them, whatever they spin with.
//!
//! The programs end only if the spinning thread gives way. With probability 1/10 per idle step it does; the seeds are
//! fixed, and a run that did not end within the step limit by chance has probability below 0.9^1000.

mod model;

use model::Op::*;
use model::{Program, run_once};
use waylay_schedule::{Run, Seed, Spec};

fn longest_run(program: &Program, spec: &str, runs: u64) -> usize {
    let mut longest = 0;
    let mut strategy = spec.parse::<Spec>().unwrap().build();
    for index in 0..runs {
        let (_, execution) = run_once(program, &mut strategy, Run { seed: Seed(8), index }).unwrap();
        assert!(!execution.cut, "{spec}, run {index} did not end");
        longest = longest.max(execution.trace.steps.len());
    }
    longest
}

const SPECS: &[&str] = &["pct", "pct:depth=3", "rpro", "pct:phases=idle", "pct:depth=2,phases=none"];

#[test]
fn a_thread_that_yields_while_it_waits_gives_way() {
    let program = Program::flat(vec![vec![Spin { flag: 0, polite: true }], vec![Local, Local, Set(0)]]);
    for spec in SPECS {
        // Four free yields and 13 more on average; 400 would take a run of bad luck of probability 10⁻⁸.
        assert!(longest_run(&program, spec, 1000) < 400);
    }
}

#[test]
fn a_thread_that_loads_a_flag_for_ever_gives_way() {
    let program = Program::flat(vec![vec![Spin { flag: 0, polite: false }], vec![Local, Local, Set(0)]]);
    for spec in SPECS {
        assert!(longest_run(&program, spec, 1000) < 64 + 400);
    }
}

#[test]
fn a_thread_that_loads_two_flags_in_turn_gives_way() {
    let program = Program::flat(vec![vec![SpinTwo(0, 1)], vec![Local, Local, Set(0), Set(1)]]);
    for spec in SPECS {
        assert!(longest_run(&program, spec, 200) < 3000);
    }
}

#[test]
fn two_threads_that_wait_for_a_third_give_way() {
    let spin = |flag| vec![Spin { flag, polite: true }, Local];
    let program = Program::flat(vec![spin(0), spin(1), vec![Local, Set(1), Local, Set(0)]]);
    for spec in SPECS {
        assert!(longest_run(&program, spec, 500) < 2000);
    }
}

/// Nothing of what it does looks idle.
#[test]
fn a_thread_that_writes_while_it_waits_gives_way() {
    let program = Program::flat(vec![vec![SpinBusy(0)], vec![Local, Local, Set(0)]]);
    for spec in SPECS {
        assert!(longest_run(&program, spec, 200) < 3000);
    }
}

/// Two threads hand a token to and fro until a third says that it is enough: none of the two goes on for long, and both
/// together would go on for ever.
#[test]
fn threads_that_hand_over_to_each_other_give_way() {
    let program =
        Program::flat(vec![vec![Relay(1, 2, 0)], vec![Relay(2, 1, 0)], vec![Local, Set(1), Local, Set(0)]]);
    for spec in SPECS {
        assert!(longest_run(&program, spec, 500) < 4000);
    }
}

/// The one that all wait for is created last and does not pay for those before it: of three in four schedules some thread
/// waits, for a thousand steps at most, each for its creation.
#[test]
fn several_that_wait_cost_little_more_than_one() {
    let spins = || vec![SpinBusy(0)];
    let program = Program::spawning(vec![
        vec![Spawn(1), Spawn(2), Spawn(3), Join(3)],
        spins(),
        spins(),
        vec![Local, Set(0)],
    ]);
    for spec in SPECS {
        let mut strategy = spec.parse::<Spec>().unwrap().build();
        let mut steps = 0;
        for index in 0..500 {
            let (_, execution) = run_once(&program, &mut strategy, Run { seed: Seed(8), index }).unwrap();
            steps += execution.trace.steps.len();
        }
        assert!(steps / 500 < 1200, "{spec}: {} steps", steps / 500);
    }
}

/// A third that only ever gets a lock between two that take it in turn. One step in three counts: while the lock is held
/// nobody else is enabled.
#[test]
fn a_thread_in_line_for_a_lock_gets_it() {
    let busy = || vec![RelayLocked(0)];
    let program = Program::flat(vec![busy(), busy(), vec![Lock(0), Set(0), Unlock(0)]]);
    for spec in SPECS {
        assert!(longest_run(&program, spec, 500) < 6000);
    }
}

/// Threads of which none is starved of anything but the end.
#[test]
fn a_livelock_stays_one() {
    let program = Program::flat(vec![vec![SpinBusy(0)], vec![SpinBusy(1)]]);
    for spec in SPECS {
        let mut strategy = spec.parse::<Spec>().unwrap().build();
        let (_, execution) = run_once(&program, &mut strategy, Run { seed: Seed(8), index: 0 }).unwrap();
        assert!(execution.cut, "{spec}");
        assert!(execution.lengths.iter().all(|&length| length > 10_000), "{spec}: {:?}", execution.lengths);
    }
}

/// The main thread waits at its exit for threads that wait for it to leave.
#[test]
fn the_final_wait_ends_when_the_others_only_spin() {
    let program = Program::spawning(vec![vec![Spawn(1), Local, Exit], vec![Spin { flag: 0, polite: true }]]);
    for spec in SPECS {
        assert!(longest_run(&program, spec, 500) < 2000);
    }
}

/// Walks, strides and samplers are fair by themselves.
#[test]
fn random_strategies_end_too() {
    let program = Program::flat(vec![vec![Spin { flag: 0, polite: false }], vec![Local, Local, Set(0)]]);
    for spec in
        ["random", "stride", "stride:max=2", "pos", "surw", "surw:focus=all", "idiom", "noise", "portfolio"]
    {
        longest_run(&program, spec, 200);
    }
}
