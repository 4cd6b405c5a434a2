//! Randomised stride: a random walk whose steps are as long as the threads ask for.
//!
//! "Promoting Secondary Orders of Event Pairs in Randomized Scheduling using a Randomized Stride", Abdelrasoul,
//! ASE 2017, section IV. A thread is chosen uniformly among the enabled ones together with a stride uniform in
//! `1..=s_max`; it runs alone until it did that many events, blocks or ends. s_max is 2, or ⌈l/ratio⌉ for a
//! thread of length l, the greatest of ten profiling runs with s_max = 1. The ratio is given or computed from a
//! confidence and a number of runs.
//!
//! As in the paper's experiment only events that happen while other threads are enabled are counted, in lengths
//! and in strides. No guarantee by depth; the probability of the least likely order of two events is
//! [`bound::stride::least_likely_order`].
//!
//! Deviations: the ratio for a confidence comes from the probability itself, not from Eq. 5 as printed, which is
//! twice as large (see [`bound::stride`]): 6.1 and 2.9 where the paper has 6.6 and 3.4, which can still be given
//! as `ratio`. A thread that no profiling run had gets the average length.

use std::fmt;

use crate::bound;
use crate::event::{Event, ThreadId};
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
    learned: Vec<u64>,
    profiled: u32,
    profiling: bool,
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
            learned: Vec::new(),
            profiled: 0,
            profiling: false,
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
                self.left = 0;
                self.current = *only;
                return Some(*only);
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

    #[inline]
    fn count(&mut self, thread: ThreadId) {
        if let Some(length) = self.lengths.get_mut(thread.index()) {
            *length += 1;
        }
    }
}

impl<S: Source> Strategy for Stride<S> {
    fn plan(&mut self, _run: Run) -> Option<RunParameters> {
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
        self.ready.clear();
        self.lengths.clear();
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
        }
    }

    #[inline]
    fn ready(&mut self, thread: ThreadId, _next: Event) {
        self.ready.insert(thread);
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

    fn end(&mut self, report: &RunReport<'_>) {
        if self.profiling && report.outcome != Outcome::Cut {
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
}
