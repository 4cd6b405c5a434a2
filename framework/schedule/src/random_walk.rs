//! Random walk: at every step one of the enabled threads, each with the same probability.
//!
//! The randomised scheduling of CalFuzzer and Maple, analysed in section III of "Promoting Secondary Orders of
//! Event Pairs in Randomized Scheduling using a Randomized Stride" (Abdelrasoul, ASE 2017). For two threads that
//! never block, the last of `b` events of one comes before the last of `a ≤ b` events of the other with
//! probability about Φ((a−b)/√(2b)) (its Eq. 3); [`secondary_order`](crate::bound::secondary_order) is the exact
//! value. No guarantee by depth. No deviations.

use crate::event::{Event, ThreadId};
use crate::ready::ReadySet;
use crate::run::{Run, RunParameters, RunReport};
use crate::source::{ChaCha, Source};
use crate::strategy::Strategy;

/// Uniform over the enabled threads at every step.
#[derive(Clone, Debug, Default)]
pub struct RandomWalk<S = ChaCha> {
    source: S,
    ready: ReadySet,
}

impl RandomWalk {
    /// A walk that draws from ChaCha8.
    pub fn new() -> RandomWalk {
        RandomWalk::with_source(ChaCha::new())
    }
}

impl<S: Source> RandomWalk<S> {
    /// A walk that draws from `source`.
    pub fn with_source(source: S) -> RandomWalk<S> {
        RandomWalk { source, ready: ReadySet::default() }
    }
}

impl<S: Source> Strategy for RandomWalk<S> {
    fn plan(&mut self, _run: Run) -> Option<RunParameters> {
        Some(RunParameters::of("random"))
    }

    fn begin(&mut self, run: Run, _parameters: &RunParameters) {
        self.source.begin(run);
        self.ready.clear();
    }

    fn spawned(&mut self, thread: ThreadId, _parent: Option<ThreadId>) {
        self.ready.reserve(thread);
    }

    #[inline]
    fn ready(&mut self, thread: ThreadId, _next: Event) {
        self.ready.insert(thread);
    }

    #[inline]
    fn blocked(&mut self, thread: ThreadId) {
        self.ready.remove(thread);
    }

    fn finished(&mut self, thread: ThreadId) {
        self.ready.remove(thread);
    }

    #[inline]
    fn pick(&mut self) -> Option<ThreadId> {
        match self.ready.as_slice() {
            [] => None,
            [only] => Some(*only),
            several => Some(several[self.source.below(several.len() as u64) as usize]),
        }
    }

    fn end(&mut self, _report: &RunReport<'_>) {}
}
