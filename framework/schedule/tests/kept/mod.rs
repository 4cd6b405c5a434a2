//! Programs with bugs of known depth, and whether runs made as a campaign makes them keep what their summary promises.
//!
//! If every run that counts finds the bug with at least the promised probability, the number of runs that find it is at least
//! binomial. A promise is broken when so few have a probability below 10⁻⁸. There are fewer than 100 checks, so the
//! false-alarm rate of all together is below 10⁻⁶. Seeds are fixed all the same.

#![allow(dead_code, unreachable_pub, reason = "a test and a benchmark are crates that use their own part")]

use super::model::Op::{self, *};
use super::model::{Execution, Program, figures, run_once};
use waylay_schedule::promise::{Aimed, promises};
use waylay_schedule::{Run, RunParameters, Seed, Spec};

const FALSE_ALARM: f64 = 1e-8;

/// A program and its bug.
pub struct Case {
    pub name: &'static str,
    pub program: Program,
    pub depth: u32,
    /// Threads that wait with a deadline.
    timers: u32,
    found: fn(&Execution) -> bool,
}

fn failed(execution: &Execution) -> bool {
    execution.failed
}

fn deadlocked(execution: &Execution) -> bool {
    execution.deadlocked
}

/// `before` steps of the first thread, then the bug of the paper's Fig. 4 and a few steps more.
pub fn late(before: usize) -> Program {
    figures::flag_too_early(before, 2)
}

fn spawning(main: Vec<Op>, others: Vec<Vec<Op>>) -> Program {
    Program::spawning(std::iter::once(main).chain(others).collect())
}

/// The programs.
pub fn cases() -> Vec<Case> {
    let case = |name, depth, program, found| Case { name, program, depth, timers: 0, found };
    let spins = |polite| {
        // The first thread waits for the second by looking, and then has the window that the third must hit.
        vec![
            vec![Spin { flag: 0, polite }, Write(1, 1), Write(0, 1)],
            vec![Local, Set(0)],
            vec![SkipUnless(1, 1, 1), FailIf(0, 0)],
        ]
    };
    let busy = vec![
        vec![SpinBusy(0), Write(1, 1), Write(0, 1)],
        vec![Local, Set(0)],
        vec![SkipUnless(1, 1, 1), FailIf(0, 0)],
    ];
    let in_two_phases = spawning(
        vec![Spawn(1), Join(1), Spawn(2), Join(2)],
        vec![vec![Write(0, 1)], vec![FailIf(0, 0), Write(0, 0), FailIf(0, 0)]],
    );
    let across_phases = spawning(
        vec![Spawn(1), Spawn(2), Join(1), Join(2), Spawn(3), Join(3), Exit],
        vec![
            vec![Write(1, 1), Write(0, 1)],
            vec![SkipUnless(1, 1, 2), SkipUnless(0, 0, 1), Write(2, 1)],
            vec![FailIf(2, 1)],
        ],
    );
    vec![
        case("order", 1, figures::ordering(), failed),
        case("late in a run of 100 steps", 2, late(100), failed),
        case("late in a run of 400 steps", 2, late(400), failed),
        case("a window in a window", 3, figures::window_in_window(2), failed),
        case("a deadlock", 2, figures::deadlock(3), deadlocked),
        case("a baton", 1, figures::baton(5), failed),
        case("main leaves early", 1, figures::exit_too_early(6), |run| run.before((0, 2), (1, 7))),
        case(
            "main leaves between two steps",
            2,
            spawning(vec![Spawn(1), Local, Exit], vec![vec![Local, Local, Write(0, 1), Write(0, 0), Local]]),
            |run| run.before((1, 3), (0, 3)) && run.before((0, 3), (1, 4)),
        ),
        case("behind a polite spin", 2, Program::flat(spins(true)), failed),
        case("behind a spin that only looks", 2, Program::flat(spins(false)), failed),
        case("behind a spin that works", 2, Program::flat(busy), failed),
        case("in the second of two phases", 1, in_two_phases, failed),
        case("in two phases", 2, figures::fork_join_twice(), failed),
        case("left by one phase for the next", 2, across_phases, failed),
        Case {
            // The waiter must come first, the expiry second and the window be hit: by constraints three.
            timers: 1,
            ..case("a wait expires in a window", 3, figures::expires_in_a_window(3), failed)
        },
        Case {
            timers: 1,
            ..case(
                "a wait expires before it is ended",
                1,
                Program::flat(vec![vec![WaitFor(0), FailIf(0, 0)], vec![Local, Write(0, 1), Set(0)]]),
                failed,
            )
        },
    ]
}

/// The probability of at most `found` successes in `runs` runs with probability `chance` each.
fn at_most(found: u64, runs: u64, chance: f64) -> f64 {
    let (ln_p, ln_q) = (chance.ln(), (-chance).ln_1p());
    let mut ln_term = runs as f64 * ln_q;
    let mut sum = ln_term.exp();
    for i in 0..found.min(runs) {
        ln_term += ((runs - i) as f64 / (i + 1) as f64).ln() + ln_p - ln_q;
        sum += ln_term.exp();
    }
    sum
}

/// What many runs found and promised.
#[derive(Debug)]
pub struct Measured {
    pub found: u64,
    /// Of the promise that is hardest to keep: runs that count, and the least probability for each.
    pub counting: u64,
    pub per_run: f64,
    /// The probability of finding it so rarely if the promise is kept.
    pub doubt: f64,
}

impl Measured {
    pub fn is_kept(&self) -> bool {
        self.doubt > FALSE_ALARM
    }
}

/// Makes the runs of a campaign: everything is learned, nothing is told.
pub fn measure(case: &Case, strategy: &str, seed: u64, runs: u64) -> Measured {
    let spec: Spec = strategy.parse().unwrap();
    let mut strategy = spec.build();
    let (mut found, mut threads, mut aimed) = (0, 0, Aimed::default());
    for index in 0..runs {
        let run = Run { seed: Seed(seed), index };
        let (parameters, execution) = run_once(&case.program, &mut strategy, run).unwrap();
        assert!(!execution.cut, "{} under {spec}: run {index} did not end", case.name);
        let failed = (case.found)(&execution);
        found += u64::from(failed);
        threads = (execution.lengths.len() as u32).max(parameters.threads).max(threads);
        aimed.take(&parameters);
        aimed.judge(&parameters, failed);
    }
    assert!(threads <= case.program.threads.len() as u32 + case.timers, "{}: {threads} threads", case.name);
    let promises = promises(&RunParameters::of(spec.to_string()), threads, &aimed);
    let of_depth = promises.iter().filter(|promise| promise.depth >= case.depth);
    let measured = of_depth.map(|promise| Measured {
        found,
        counting: promise.runs,
        per_run: promise.per_run,
        // Of the runs that count: the others promise nothing, and may fail more often.
        doubt: at_most(promise.failures.unwrap_or(found), promise.runs, promise.per_run),
    });
    let hardest = measured.min_by(|a, b| a.doubt.total_cmp(&b.doubt));
    hardest.unwrap_or_else(|| panic!("{} under {spec}: nothing is promised", case.name))
}
