//! RPro: PCT whose change points lie close together.
//!
//! "Radius Aware Probabilistic Testing of Deadlocks with Guarantees", Cai and Yang, ASE 2016. The events of a
//! deadlock usually lie within a short stretch of the execution, the radius r of the bug. The first change point
//! is uniform over all k steps, each later one uniform over the r steps that begin there, so a bug of depth d ≥ 2
//! whose first change point comes first and whose others follow within r steps is found with probability at least
//! 1/(n·k·r^(d−2)); for d = 1 it is 1/n. The proof is that of PCT with other factors.
//!
//! Deviations: those of [`pct`](crate::pct). Where the later change points may lie is our reading of the idea, made
//! from the paper's abstract and the stride paper's account of it: the window begins at the first change point and is
//! measured in counted steps. The bound above is for this reading.

use std::fmt;

use crate::bound;
use crate::depth::Depth;
use crate::event::{Event, ThreadId};
use crate::learned::Learned;
use crate::pct::{plan_depth, write_rules};
use crate::priority::{Changes, Priorities, Rules};
use crate::run::{Run, RunParameters, RunReport};
use crate::source::{ChaCha, Source};
use crate::strategy::Strategy;

/// What can be set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RProOptions {
    /// r: the paper uses 10 and 50.
    pub radius: u64,
    /// How the depth is chosen.
    pub depth: Depth,
    /// k, when it is known beforehand; 0: learned.
    pub steps: u64,
    /// The practical parts.
    pub rules: Rules,
}

impl Default for RProOptions {
    fn default() -> Self {
        RProOptions { radius: 50, depth: Depth::Fixed(3), steps: 0, rules: Rules::default() }
    }
}

impl fmt::Display for RProOptions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "rpro:radius={},{}", self.radius, self.depth)?;
        write_rules(out, self.steps, self.rules)
    }
}

/// RPro.
#[derive(Clone, Debug)]
pub struct RPro<S = ChaCha> {
    options: RProOptions,
    threads: Priorities<S>,
    learned: Learned,
}

impl RPro {
    /// RPro that draws from ChaCha8.
    pub fn new(options: RProOptions) -> RPro {
        RPro::with_source(options, ChaCha::new())
    }
}

impl<S: Source> RPro<S> {
    /// RPro that draws from `source`.
    pub fn with_source(options: RProOptions, source: S) -> RPro<S> {
        RPro { options, threads: Priorities::new(source, options.rules), learned: Learned::default() }
    }
}

impl<S: Source> Strategy for RPro<S> {
    fn plan(&mut self, run: Run) -> Option<RunParameters> {
        let RProOptions { radius, depth, steps, .. } = self.options;
        let chance = |threads, steps, depth| bound::rpro(threads, steps, depth, radius);
        Some(plan_depth(run, self.options.to_string(), depth, steps, &self.learned, chance))
    }

    fn begin(&mut self, run: Run, parameters: &RunParameters) {
        let RunParameters { depth, steps, .. } = *parameters;
        self.threads.begin(run, Changes { depth, steps, radius: Some(self.options.radius) });
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
