//! Randomised stride: a random walk whose steps are as long as the threads ask for.
//!
//! "Promoting Secondary Orders of Event Pairs in Randomized Scheduling using a Randomized Stride", Abdelrasoul,
//! ASE 2017, section IV. A thread is chosen uniformly among the enabled ones together with a stride uniform in
//! `1..=s_max`; it runs alone until it did that many events, blocks or ends. s_max is 2, or ⌈l/ratio⌉ for a
//! thread of length l, the greatest of ten profiling runs with s_max = 1. The ratio is given or computed from a
//! confidence and a number of runs.
//!
//! As in the paper's experiment only events that happen while other threads are enabled are counted in strides. In
//! lengths, those count as well that happen while some other thread was not joined: in another schedule it is enabled
//! then. Without them a thread that is left alone early in a random walk, as long ones are, would be taken for a short
//! one, and its strides would never take it to its end. No guarantee by depth; the probability of the least likely order of two events is
//! [`bound::stride::least_likely_order`].
//!
//! Deviations: the ratio for a confidence comes from the probability itself, not from Eq. 5 as printed, which is
//! twice as large (see [`bound::stride`]): 6.1 and 2.9 where the paper has 6.6 and 3.4, which can still be given
//! as `ratio`. A thread that no profiling run had gets the average length.

use std::fmt;

use crate::bound;
use crate::event::{Event, EventKind, ObjectId, ThreadId};
use crate::ready::ReadySet;
use crate::run::{Outcome, Run, RunParameters, RunReport};
use crate::source::{ChaCha, Source};
use crate::strategy::Strategy;

/// Runs with s_max = 1 in which lengths are measured.
const PROFILING_RUNS: u32 = 10;

/// How the greatest stride is found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StrideLimit {
    /// The same for all threads.
    Max(u64),
    /// ⌈l/ratio⌉ for a thread of length l.
    Ratio(f64),
    /// The greatest ratio at which this many independent least likely orders are covered in the planned runs.
    Confident {
        /// The wanted probability, between 0 and 1.
        confidence: f64,
        /// The planned runs.
        runs: u64,
        /// How many orders of event pairs one run must get right.
        orders: u32,
    },
}

impl Default for StrideLimit {
    fn default() -> Self {
        StrideLimit::Confident { confidence: 0.95, runs: 10_000, orders: 1 }
    }
}

impl StrideLimit {
    /// The ratio l/s_max, unless the stride is the same for all threads.
    pub fn ratio(self) -> Option<f64> {
        match self {
            StrideLimit::Max(_) => None,
            StrideLimit::Ratio(ratio) => Some(ratio),
            StrideLimit::Confident { confidence, runs, orders } => {
                let left = runs.saturating_sub(u64::from(PROFILING_RUNS)).max(1);
                Some(bound::stride::ratio_for(confidence, left as f64, orders))
            }
        }
    }
}

impl fmt::Display for StrideLimit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StrideLimit::Max(max) => write!(out, "stride:max={max}"),
            StrideLimit::Ratio(ratio) => write!(out, "stride:ratio={ratio}"),
            StrideLimit::Confident { confidence, runs, orders } => {
                write!(out, "stride:confidence={confidence},runs={runs},orders={orders}")
            }
        }
    }
}

/// Randomised stride.
#[derive(Clone, Debug)]
pub struct Stride<S = ChaCha> {
    source: S,
    limit: StrideLimit,
    /// l/s_max once it was needed: for a confidence it takes hundreds of evaluations, far more than a short run does.
    ratio: Option<f64>,
    ready: ReadySet,
    /// s_max by thread, and for threads beyond the table.
    greatest: Vec<u64>,
    otherwise: u64,
    current: ThreadId,
    /// Events left of the stride of `current`.
    left: u64,
    /// Counted events by thread in this run.
    lengths: Vec<u64>,
    /// Threads somebody waited for.
    joined: Vec<bool>,
    joins: usize,
    learned: Vec<u64>,
    profiled: u32,
    profiling: bool,
    /// Runs with smaller numbers were planned before what is a step changed: their lengths say nothing.
    valid_from: u64,
    planned_until: u64,
    valid: bool,
}

impl Stride {
    /// Randomised stride that draws from ChaCha8.
    pub fn new(limit: StrideLimit) -> Stride {
        Stride::with_source(limit, ChaCha::new())
    }
}

impl<S: Source> Stride<S> {
    /// Randomised stride that draws from `source`.
    pub fn with_source(limit: StrideLimit, source: S) -> Stride<S> {
        Stride {
            source,
            limit,
            ratio: None,
            ready: ReadySet::default(),
            greatest: Vec::new(),
            otherwise: 1,
            current: ThreadId::MAIN,
            left: 0,
            lengths: Vec::new(),
            joined: Vec::new(),
            joins: 0,
            learned: Vec::new(),
            profiled: 0,
            profiling: false,
            valid_from: 0,
            planned_until: 0,
            valid: true,
        }
    }

    /// Whether strides are measured by the lengths of threads.
    fn is_relative(&self) -> bool {
        !matches!(self.limit, StrideLimit::Max(_))
    }

    fn ratio(&mut self) -> Option<f64> {
        if self.ratio.is_none() {
            self.ratio = self.limit.ratio();
        }
        self.ratio
    }

    fn choose(&mut self) -> Option<ThreadId> {
        let chosen = match self.ready.as_slice() {
            [] => return None,
            [only] => {
                let only = *only;
                self.left = 0;
                self.current = only;
                self.count_alone(only);
                return Some(only);
            }
            several => several[self.source.below(several.len() as u64) as usize],
        };
        let greatest = self.greatest.get(chosen.index()).copied().unwrap_or(self.otherwise);
        // The event that is about to run is the first of the stride.
        self.left = if greatest > 1 { self.source.below(greatest) } else { 0 };
        self.current = chosen;
        self.count(chosen);
        Some(chosen)
    }

    /// No other thread is enabled, but in another schedule one may be.
    #[inline]
    fn count_alone(&mut self, thread: ThreadId) {
        if self.joins + 1 < self.lengths.len() {
            self.count(thread);
        }
    }

    #[cold]
    fn notice_join(&mut self, target: ObjectId) {
        let index = target.0.wrapping_sub(ObjectId::of_thread(ThreadId::MAIN).0) as usize;
        if let Some(joined) = self.joined.get_mut(index)
            && !std::mem::replace(joined, true)
        {
            self.joins += 1;
        }
    }

    #[inline]
    fn count(&mut self, thread: ThreadId) {
        if let Some(length) = self.lengths.get_mut(thread.index()) {
            *length += 1;
        }
    }
}

impl<S: Source> Strategy for Stride<S> {
    fn plan(&mut self, run: Run) -> Option<RunParameters> {
        self.planned_until = self.planned_until.max(run.index.saturating_add(1));
        let profiling = self.is_relative() && self.profiled < PROFILING_RUNS;
        // Handed on, because the run may happen in a process that was made for it alone.
        let ratio_bits = if profiling { None } else { self.ratio().map(f64::to_bits) };
        Some(RunParameters {
            threads: self.learned.len() as u32,
            steps: self.learned.iter().sum(),
            lengths: self.learned.clone(),
            profiling,
            ratio_bits,
            ..RunParameters::of(self.limit.to_string())
        })
    }

    fn begin(&mut self, run: Run, parameters: &RunParameters) {
        self.source.begin(run);
        self.valid = run.index >= self.valid_from;
        self.ready.clear();
        self.lengths.clear();
        self.joined.clear();
        self.joins = 0;
        self.left = 0;
        self.profiling = parameters.profiling;
        self.greatest.clear();
        let ratio = match parameters.ratio_bits {
            Some(bits) => Some(f64::from_bits(bits)),
            None if parameters.profiling => None,
            // Stored before runs were told their ratio.
            None => self.ratio(),
        };
        match (self.limit, ratio) {
            _ if parameters.profiling => self.otherwise = 1,
            (StrideLimit::Max(max), _) => self.otherwise = max,
            (_, Some(ratio)) if ratio > 0.0 => {
                let greatest = |length: f64| (length / ratio).ceil().max(1.0) as u64;
                self.greatest.extend(parameters.lengths.iter().map(|&length| greatest(length as f64)));
                let total: u64 = parameters.lengths.iter().sum();
                self.otherwise = greatest(total as f64 / parameters.lengths.len().max(1) as f64);
            }
            // No ratio reaches the confidence: threads run to their end.
            _ => self.otherwise = parameters.steps.max(1),
        }
    }

    fn spawned(&mut self, thread: ThreadId, _parent: Option<ThreadId>) {
        self.ready.reserve(thread);
        if self.lengths.len() <= thread.index() {
            self.lengths.resize(thread.index() + 1, 0);
            self.joined.resize(thread.index() + 1, false);
        }
    }

    #[inline]
    fn ready(&mut self, thread: ThreadId, next: Event) {
        self.ready.insert(thread);
        if next.kind == EventKind::ThreadJoin {
            self.notice_join(next.object);
        }
    }

    #[inline]
    fn blocked(&mut self, thread: ThreadId) {
        self.ready.remove(thread);
        if thread == self.current {
            self.left = 0;
        }
    }

    fn finished(&mut self, thread: ThreadId) {
        self.blocked(thread);
    }

    #[inline]
    fn pick(&mut self) -> Option<ThreadId> {
        if self.left > 0 {
            if self.ready.len() > 1 {
                self.left -= 1;
                self.count(self.current);
            } else {
                self.count_alone(self.current);
            }
            return Some(self.current);
        }
        self.choose()
    }

    #[inline]
    fn step(&mut self, current: ThreadId, next: Event) -> ThreadId {
        self.ready(current, next);
        self.pick().unwrap_or(current)
    }

    /// Threads are longer now than they were when they were measured.
    fn steps_changed(&mut self) {
        self.learned.clear();
        self.profiled = 0;
        self.valid_from = self.planned_until;
    }

    fn end(&mut self, report: &RunReport<'_>) {
        if self.profiling && self.valid && report.outcome != Outcome::Cut {
            self.profiled += 1;
            if self.learned.len() < self.lengths.len() {
                self.learned.resize(self.lengths.len(), 0);
            }
            for (learned, &length) in self.learned.iter_mut().zip(&self.lengths) {
                *learned = (*learned).max(length);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bound::stride::evaluations;

    /// Planning and beginning runs, as a process does that is made for one run. However many runs are planned, the ratio
    /// is computed once by the side that plans and never by the side that runs.
    #[test]
    fn a_planned_run_needs_no_further_computation() {
        for planned in [10_000, 200_000, 1 << 40] {
            let limit = StrideLimit::Confident { confidence: 0.95, runs: planned, orders: 1 };
            let mut planner = Stride::new(limit);
            let before = evaluations();
            let run = |index| Run { index, ..Run::default() };
            let mut parameters = Vec::new();
            for index in 0..100 {
                let given = planner.plan(run(index)).unwrap();
                planner.begin(run(index), &given);
                planner.spawned(ThreadId::MAIN, None);
                planner.end(&RunReport { outcome: Outcome::Passed, steps: 1, lengths: &[1], news: false });
                parameters.push(given);
            }
            let once = evaluations() - before;
            assert!((1..200).contains(&once), "{once} evaluations for {planned} runs");
            for (index, given) in parameters.iter().enumerate() {
                Stride::new(limit).begin(run(index as u64), given);
            }
            assert_eq!(evaluations() - before, once, "a run computes nothing");
        }
    }

    #[test]
    fn a_run_stored_without_its_ratio_is_made_as_it_was() {
        let limit = StrideLimit::default();
        let ratio = limit.ratio().unwrap();
        let given = RunParameters { lengths: vec![100, 7], ..RunParameters::of(limit.to_string()) };
        let told = RunParameters { ratio_bits: Some(ratio.to_bits()), ..given.clone() };
        let greatest = |parameters: &RunParameters| {
            let mut stride = Stride::new(limit);
            stride.begin(Run::default(), parameters);
            (stride.greatest, stride.otherwise)
        };
        assert_eq!(greatest(&given), greatest(&told));
        assert_eq!(greatest(&given).0, [(100.0 / ratio).ceil() as u64, (7.0 / ratio).ceil() as u64]);
    }

    /// A random walk leaves the longer thread alone soon. Its other steps count all the same, until everybody was joined: in
    /// another schedule they lie beside the other thread.
    #[test]
    fn a_long_thread_is_as_long_as_it_can_be_beside_others() {
        let (main, long, short) = (ThreadId(0), ThreadId(1), ThreadId(2));
        let work = Event::local(EventKind::UserWrite);
        let mut stride = Stride::new(StrideLimit::Ratio(3.0));
        let measure = |stride: &mut Stride, index| {
            let run = Run { index, ..Run::default() };
            let given = stride.plan(run).unwrap();
            stride.begin(run, &given);
            stride.spawned(main, None);
            stride.spawned(long, Some(main));
            stride.spawned(short, Some(main));
            stride.ready(short, work);
            assert_eq!(stride.pick(), Some(short));
            stride.finished(short);
            stride.ready(long, work);
            assert_eq!(stride.pick(), Some(long));
            (1..600).for_each(|_| assert_eq!(stride.step(long, work), long));
            stride.finished(long);
            for other in [long, short] {
                stride.ready(main, Event::on_thread(EventKind::ThreadJoin, other));
                stride.pick();
            }
            (0..50).for_each(|_| assert_eq!(stride.step(main, work), main));
            stride.finished(main);
            stride.end(&RunReport {
                outcome: Outcome::Passed,
                steps: 653,
                lengths: &[52, 600, 1],
                news: false,
            });
        };
        (0..10).for_each(|index| measure(&mut stride, index));
        let given = stride.plan(Run { index: 10, ..Run::default() }).unwrap();
        assert!(!given.profiling);
        assert_eq!(given.lengths, [1, 600, 1]);
        // What was planned before other events became steps measures nothing.
        stride.steps_changed();
        (0..11).for_each(|index| {
            let profiling = RunParameters { profiling: true, ..RunParameters::of("stride:ratio=3") };
            stride.begin(Run { index, ..Run::default() }, &profiling);
            stride.spawned(main, None);
            stride.end(&RunReport { outcome: Outcome::Passed, steps: 1, lengths: &[1], news: false });
        });
        let given = stride.plan(Run { index: 11, ..Run::default() }).unwrap();
        assert!(given.profiling && given.lengths.is_empty());
    }
}
