//! PCT: random priorities and d−1 random change points.
//!
//! "A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs", Burckhardt, Kothari, Musuvathi and
//! Nagarakatte, ASPLOS 2010, Fig. 7. A bug of depth d in a program of at most n threads and k steps is found in
//! one run with probability at least 1/(n·k^(d−1)).
//!
//! Deviations, all from its section 4 or harmless to the bound:
//! - priorities are drawn when a thread is created, as independent keys whose order is a uniform permutation, so
//!   n need not be known;
//! - change points fall only on steps that count (see [`priority`](crate::priority));
//! - k is the greatest estimate of the last runs (see [`priority`](crate::priority)); the first run has depth 1, which needs no k, and so do the ten profiling
//!   runs before a depth is chosen for a confidence (the stride paper profiles with a random walk);
//! - phases begin at joins by default: the bound then speaks of bugs within one phase;
//! - the main thread drops before it exits: the bound then leaves out bugs that need it to leave early;
//! - spinning threads are lowered with probability 1/10 per idle step: the bound then leaves out bugs that need a
//!   thread to spin on.
//!
//! The grouping of threads for parallel execution (PPCT) is out of scope: one thread runs at a time here.

use std::fmt;

use crate::bound;
use crate::depth::Depth;
use crate::event::{Event, ThreadId};
use crate::learned::Learned;
use crate::priority::{Changes, Phases, Priorities, Rules};
use crate::run::{Run, RunParameters, RunReport};
use crate::source::{ChaCha, Source};
use crate::strategy::Strategy;

/// What can be set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PctOptions {
    /// How the depth is chosen.
    pub depth: Depth,
    /// k, when it is known beforehand; 0: learned.
    pub steps: u64,
    /// The practical parts.
    pub rules: Rules,
}

impl Default for PctOptions {
    fn default() -> Self {
        PctOptions { depth: Depth::Auto { greatest: 5 }, steps: 0, rules: Rules::default() }
    }
}

impl fmt::Display for PctOptions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "pct:{}", self.depth)?;
        write_rules(out, self.steps, self.rules)
    }
}

pub(crate) fn write_rules(out: &mut fmt::Formatter<'_>, steps: u64, rules: Rules) -> fmt::Result {
    if steps > 0 {
        write!(out, ",steps={steps}")?;
    }
    match rules.phases {
        Phases::Joined => {}
        Phases::None => out.write_str(",phases=none")?,
        Phases::Idle => out.write_str(",phases=idle")?,
    }
    if !rules.final_wait {
        out.write_str(",final-wait=off")?;
    }
    if !rules.starvation {
        out.write_str(",starvation=off")?;
    }
    Ok(())
}

/// PCT.
#[derive(Clone, Debug)]
pub struct Pct<S = ChaCha> {
    options: PctOptions,
    threads: Priorities<S>,
    learned: Learned,
}

impl Pct {
    /// PCT that draws from ChaCha8.
    pub fn new(options: PctOptions) -> Pct {
        Pct::with_source(options, ChaCha::new())
    }
}

impl<S: Source> Pct<S> {
    /// PCT that draws from `source`.
    pub fn with_source(options: PctOptions, source: S) -> Pct<S> {
        Pct { options, threads: Priorities::new(source, options.rules), learned: Learned::default() }
    }
}

/// Separates the draw of the depth from the draws of the run.
const DEPTH_STREAM: u64 = 1;

/// Depth, threads and steps of the next run, for PCT and RPro alike.
pub(crate) fn plan_depth(
    run: Run,
    strategy: String,
    depth: Depth,
    steps: u64,
    learned: &Learned,
    chance: impl Fn(u64, u64, u32) -> bound::Chance,
) -> RunParameters {
    let steps = if steps > 0 { steps } else { learned.steps() };
    let threads = learned.threads();
    let mut parameters = RunParameters { threads, steps, ..RunParameters::of(strategy) };
    let measured = learned.runs() >= depth.profiling_runs();
    let known = steps > 0 && (measured || !matches!(depth, Depth::Confident { .. }));
    if known {
        let mut stream = ChaCha::new();
        stream.begin(run.split(DEPTH_STREAM));
        let chance = |depth| chance(u64::from(threads), steps, depth);
        parameters.depth = depth.choose(chance, |bound| stream.below(bound));
    } else {
        parameters.depth = 1;
        parameters.profiling = true;
    }
    parameters
}

impl<S: Source> Strategy for Pct<S> {
    fn plan(&mut self, run: Run) -> Option<RunParameters> {
        let PctOptions { depth, steps, .. } = self.options;
        Some(plan_depth(run, self.options.to_string(), depth, steps, &self.learned, bound::pct))
    }

    fn begin(&mut self, run: Run, parameters: &RunParameters) {
        self.threads.begin(run, Changes { depth: parameters.depth, steps: parameters.steps, radius: None });
    }

    fn spawned(&mut self, thread: ThreadId, _parent: Option<ThreadId>) {
        self.threads.spawned(thread);
    }

    #[inline]
    fn ready(&mut self, thread: ThreadId, next: Event) {
        self.threads.ready(thread, next);
    }

    #[inline]
    fn blocked(&mut self, thread: ThreadId) {
        self.threads.blocked(thread);
    }

    fn finished(&mut self, thread: ThreadId) {
        self.threads.finished(thread);
    }

    #[inline]
    fn pick(&mut self) -> Option<ThreadId> {
        self.threads.pick()
    }

    #[inline]
    fn step(&mut self, current: ThreadId, next: Event) -> ThreadId {
        self.threads.step(current, next)
    }

    fn end(&mut self, report: &RunReport<'_>) {
        self.learned.take(report, self.threads.reach());
    }
}
