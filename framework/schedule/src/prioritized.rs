//! A strategy by priority: plans how deep the next run goes, runs it with [`Priorities`], learns how long runs are.
//!
//! PCT and RPro are this, with different options.

use std::fmt;

use crate::bound::Chance;
use crate::depth::Depth;
use crate::event::{Event, ThreadId};
use crate::learned::{Learned, Length};
use crate::priority::{Changes, Phases, Priorities, Rules};
use crate::run::{Outcome, Run, RunParameters, RunReport};
use crate::source::{ChaCha, Source};
use crate::strategy::Strategy;

/// Separates the draw of the depth from the draws of the run.
const DEPTH_STREAM: u64 = 1;
/// Separates the draw of bare runs from both.
const BARE_STREAM: u64 = 2;
/// One run in so many is bare, unless all are. Whatever a bug needs, at most half of the runs are of the kind that cannot
/// show it, and no other share promises as much for both kinds.
pub const BARE_ONE_IN: u64 = 2;

/// What a strategy by priority is made of; its text is the strategy's name.
pub trait Planning: fmt::Display + Send {
    /// How the depth is chosen.
    fn depth(&self) -> Depth;
    /// k, when it is known beforehand; 0: learned.
    fn steps(&self) -> u64;
    /// The practical parts.
    fn rules(&self) -> Rules;
    /// How far behind the first change point the others may lie; `None`: anywhere.
    fn radius(&self) -> Option<u64>;
    /// The promise for this many threads and steps, and bugs of this depth.
    fn chance(&self, threads: u64, steps: u64, depth: u32) -> Chance;
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

/// A strategy by priority.
#[derive(Clone, Debug)]
pub struct Prioritized<O, S = ChaCha> {
    options: O,
    threads: Priorities<S>,
    learned: Learned,
    /// Whether this run is.
    bare: bool,
}

impl<O: Planning> Prioritized<O> {
    /// One that draws from ChaCha8.
    pub fn new(options: O) -> Prioritized<O> {
        Prioritized::with_source(options, ChaCha::new())
    }
}

impl<O: Planning, S: Source> Prioritized<O, S> {
    /// One that draws from `source`.
    pub fn with_source(options: O, source: S) -> Prioritized<O, S> {
        let threads = Priorities::new(source, options.rules());
        Prioritized { options, threads, learned: Learned::default(), bare: false }
    }
}

impl<O: Planning, S: Source> Strategy for Prioritized<O, S> {
    fn plan(&mut self, run: Run) -> Option<RunParameters> {
        let (depth, learned) = (self.options.depth(), &self.learned);
        let always_bare = self.options.rules() == Rules::BARE;
        // What the user knows is at least what was seen: change points must reach the end of every run.
        let (whole, phase) = match self.options.steps() {
            0 => (learned.reach(), learned.phase()),
            given => (given.max(learned.longest()), given),
        };
        let threads = learned.threads();
        let mut parameters =
            RunParameters { threads, steps: phase, ..RunParameters::of(self.options.to_string()) };
        let measured = learned.runs() >= depth.profiling_runs();
        let known = whole > 0 && (measured || !matches!(depth, Depth::Confident { .. }));
        if known {
            let mut stream = ChaCha::new();
            stream.begin(run.split(BARE_STREAM));
            let drawn = stream.one_in(BARE_ONE_IN);
            let share = if always_bare { 1.0 } else { BARE_ONE_IN as f64 };
            stream.begin(run.split(DEPTH_STREAM));
            let chance = |depth| {
                let of_bare = self.options.chance(u64::from(threads), whole, depth);
                Chance::from_ln(of_bare.ln() - share.ln())
            };
            parameters.depth = depth.choose(chance, |bound| stream.below(bound));
            // Where depths are drawn, the deeper runs with the practical parts show bugs of depth 1 as well. Before a run in
            // phases was seen, nothing is known about them.
            let shallow = parameters.depth == 1 && matches!(depth, Depth::Auto { .. });
            parameters.bare = always_bare || drawn || shallow || phase == 0;
            if parameters.bare {
                parameters.steps = whole;
            }
        } else {
            parameters.depth = 1;
            parameters.profiling = true;
        }
        Some(parameters)
    }

    fn begin(&mut self, run: Run, parameters: &RunParameters) {
        let RunParameters { depth, steps, bare, .. } = *parameters;
        self.bare = bare;
        self.threads.begin(run, Changes { depth, steps, radius: self.options.radius() }, bare);
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
        let threads = || (0..report.lengths.len()).map(|index| ThreadId(index as u32));
        let cut_off = threads().filter(|&thread| self.threads.was_cut_off(thread));
        let missing = self.learned.missing(report.lengths, cut_off);
        if report.outcome == Outcome::Passed && !self.threads.suspected() {
            let finished = threads().filter(|&thread| self.threads.has_finished(thread));
            self.learned.finish(report.lengths, finished);
        }
        let length = Length {
            whole: self.threads.whole_reach() + missing,
            phase: (!self.bare).then(|| self.threads.reach()),
            threads: (report.lengths.len() + self.threads.timer_count()) as u32,
        };
        self.learned.take(report, length);
    }

    fn reach(&self) -> u64 {
        self.threads.whole_reach()
    }

    fn was_long(&mut self, _: &RunParameters, steps: u64) {
        self.learned.lengthen(steps);
    }
}
