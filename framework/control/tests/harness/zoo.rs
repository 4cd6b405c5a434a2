//! The zoos: programs with known bugs of known depth, and how often PCT finds them when they are repeated in-process.

use waylay_control_protocol::{Settings, Switching};

use super::{Program, parameters};

/// File, name and depth.
pub(crate) const ANIMALS: [(&str, &str, u32); 27] = [
    ("zoo.c", "order", 1),
    ("zoo.c", "atomicity", 2),
    ("zoo.c", "two_locks", 2),
    ("zoo.c", "three_locks", 3),
    ("zoo.c", "lost_wake_up", 2),
    ("zoo.c", "missed_signal", 1),
    ("zoo.c", "aba", 3),
    ("zoo.c", "double_checked", 2),
    ("zoo.c", "philosophers", 3),
    ("zoo.c", "writer_starves", 2),
    ("zoo.c", "barrier_misuse", 1),
    ("zoo.c", "semaphore_misuse", 2),
    ("zoo.c", "once_misuse", 2),
    ("zoo.c", "no_loop", 2),
    ("zoo.c", "use_after_join", 1),
    ("zoo.c", "overrun", 2),
    ("zoo.cpp", "stale_size", 2),
    ("zoo.cpp", "lock_order", 2),
    ("zoo.cpp", "wait_without_predicate", 1),
    ("zoo.cpp", "taken_away", 2),
    ("zoo.cpp", "too_many_permits", 2),
    ("zoo.cpp", "upgrade", 2),
    ("zoo.rs", "lost_update", 2),
    ("zoo.rs", "lock_order", 2),
    ("zoo.rs", "lost_wake_up", 2),
    ("zoo.rs", "read_too_early", 1),
    ("zoo.rs", "freed_twice", 2),
];

/// What many runs of one animal showed.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) failures: u64,
    pub(crate) deadlocks: u64,
    /// The most threads and steps of a run.
    pub(crate) threads: u32,
    pub(crate) steps: u64,
}

/// Repeats an animal (`"buggy"`) or its correct twin (`"fixed"`) in-process.
pub(crate) fn repeat(file: &str, name: &str, how: &str, strategy: &str, runs: u64) -> Tally {
    let program = Program::build(file).with(&[name, how, &runs.to_string()]);
    let mut settings = Settings::new(Switching::Carrier, 7, 0);
    settings.in_process = 1;
    let outcome = program.run_with(settings, &parameters(strategy, 0, 0, 0));
    let numbers: Vec<u64> =
        outcome.stdout.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    let &[failures, deadlocks, threads, steps] = numbers.as_slice() else { panic!("{name}: {outcome:#?}") };
    Tally { failures, deadlocks, threads: threads as u32, steps }
}

/// How often a bug was found, and how often PCT promises it at least.
#[derive(Debug)]
pub(crate) struct Detection {
    pub(crate) runs: u64,
    pub(crate) tally: Tally,
    pub(crate) promised: f64,
    pub(crate) found: f64,
}

impl Detection {
    /// Whether the promise was kept. Where it is exact, half of all samples lie below it: five standard deviations are
    /// allowed, which a kept promise exceeds once in 3 million animals.
    pub(crate) fn is_kept(&self) -> bool {
        let deviation = (self.promised * (1.0 - self.promised) / self.runs as f64).sqrt();
        self.tally.failures > 0 && self.found >= self.promised - 5.0 * deviation
    }
}

/// Looks for a bug of this depth in so many runs; n and k are measured beforehand.
pub(crate) fn detect(file: &str, name: &str, depth: u32, runs: u64) -> Detection {
    let measured = repeat(file, name, "fixed", "random", 200);
    let buggy = repeat(file, name, "buggy", "random", 200);
    let (threads, steps) = (measured.threads.max(buggy.threads), measured.steps.max(buggy.steps));
    let tally = repeat(file, name, "buggy", &format!("pct:depth={depth},steps={steps}"), runs);
    let promised = 1.0 / (f64::from(threads) * (steps as f64).powi(depth as i32 - 1));
    Detection { runs, found: tally.failures as f64 / runs as f64, tally, promised }
}
