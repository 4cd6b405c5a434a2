//! SURW: selectively uniform random walk.
//!
//! "Selectively Uniform Concurrency Testing", Zhao, Wolff, Mathur and Roychoudhury, ASPLOS 2025. A walk that picks
//! the next thread in proportion to the events it still has to do, its future children's included, samples the
//! interleavings of a program without blocking uniformly (URW). The selective form does this for a set of
//! interesting events only: the thread whose interesting event comes next is drawn by what is left of those, the
//! other threads wait in front of theirs, and everything uninteresting runs in a uniform walk in between. So all
//! interleavings stay possible and those of the interesting events are equally likely. No guarantee by depth.
//!
//! Which events are interesting is a choice made per run: one shared object or one kind of event, drawn among
//! those that profiling runs saw used by two threads or more, or all events (which is URW). Profiling runs are
//! random walks. When other events become steps they are made again, because what was no step when it was counted would
//! never be focused on; until then the old counts serve.
//!
//! Deviations: counts are estimates, the greatest of two profiling runs by thread number; a thread
//! with nothing left by the count weighs 1, so that a wrong estimate cannot starve it; when all that can run waits
//! for a thread that is blocked, or only spins while others wait, the draw is repeated among those that wait.

use crate::census::{Census, in_focus};
use crate::event::{Event, EventKind, ThreadId};
use crate::ready::ReadySet;
use crate::run::{Focus, Outcome, Run, RunParameters, RunReport};
use crate::source::{ChaCha, Source};
use crate::strategy::Strategy;
use crate::weights::Weights;

/// Runs that count events. Two, so that names that do not last from run to run are found out.
const PROFILING_RUNS: u32 = 2;
/// Separates the draw of the focus from the draws of the run.
const FOCUS_STREAM: u64 = 2;

/// Uninteresting steps in a row, while a thread waits, after which those that run are taken to be spinning: so many, or
/// twice the steps of a whole earlier run if that is more.
const PATIENCE_LEAST: u64 = 1024;
/// What an idle step (yield, sleep, timeout) counts as: 16 of them in a row are enough.
const IDLE_STEPS: u64 = 64;

/// Which events are interesting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    /// A shared object or kind, drawn anew for each run.
    #[default]
    Drawn,
    /// All: the uniform random walk.
    All,
}

/// Selectively uniform random walk.
#[derive(Clone, Debug)]
pub struct Surw<S = ChaCha> {
    source: S,
    selection: Selection,
    focus: Option<Focus>,
    profiling: bool,
    /// Events left by thread, those of children to come included.
    left: Weights,
    /// The same for threads not created yet.
    planned: Vec<u64>,
    pending: Vec<Event>,
    /// Enabled threads in front of an uninteresting event.
    free: ReadySet,
    /// Enabled threads in front of an interesting event.
    waiting: ReadySet,
    /// Whose interesting event comes next.
    intended: Option<ThreadId>,
    /// Uninteresting steps since the last interesting one.
    dull: u64,
    patience: u64,
    lengths: Vec<u64>,
    parents: Vec<u32>,
    /// What runs are planned with, and what is being counted to take its place.
    known: Profile,
    fresh: Profile,
    /// Other events became steps since `known` was counted.
    outdated: bool,
    /// Profiling runs that were planned for `fresh`.
    asked: u32,
    /// The first run that is not planned yet, and the first whose events are steps as they are now.
    planned_until: u64,
    valid_from: u64,
    /// Whether the events of this run are.
    valid: bool,
}

/// What profiling runs counted.
#[derive(Clone, Debug, Default)]
struct Profile {
    census: Census,
    lengths: Vec<u64>,
    parents: Vec<u32>,
}

impl Profile {
    fn is_whole(&self) -> bool {
        self.census.runs() >= PROFILING_RUNS
    }

    fn take(&mut self, lengths: &[u64], parents: &[u32]) {
        self.census.end();
        self.lengths.resize(self.lengths.len().max(lengths.len()), 0);
        for (learned, &length) in self.lengths.iter_mut().zip(lengths) {
            *learned = (*learned).max(length);
        }
        if parents.len() > self.parents.len() {
            self.parents = parents.to_vec();
        }
    }
}

impl Surw {
    /// SURW that draws from ChaCha8.
    pub fn new(selection: Selection) -> Surw {
        Surw::with_source(selection, ChaCha::new())
    }
}

impl<S: Source> Surw<S> {
    /// SURW that draws from `source`.
    pub fn with_source(selection: Selection, source: S) -> Surw<S> {
        Surw {
            source,
            selection,
            focus: None,
            profiling: false,
            left: Weights::default(),
            planned: Vec::new(),
            pending: Vec::new(),
            free: ReadySet::default(),
            waiting: ReadySet::default(),
            intended: None,
            dull: 0,
            patience: PATIENCE_LEAST,
            lengths: Vec::new(),
            parents: Vec::new(),
            known: Profile::default(),
            fresh: Profile::default(),
            outdated: false,
            asked: 0,
            planned_until: 0,
            valid_from: 0,
            valid: true,
        }
    }

    fn interesting(&self, event: &Event) -> bool {
        !self.profiling && in_focus(self.focus, event)
    }

    /// Draws among the threads that wait, because the intended one cannot move.
    fn intend_waiting(&mut self) {
        let total: u64 = self.waiting.as_slice().iter().map(|&thread| self.left.get(thread).max(1)).sum();
        let mut point = self.source.below(total);
        for &thread in self.waiting.as_slice() {
            let weight = self.left.get(thread).max(1);
            if point < weight {
                self.intended = Some(thread);
                return;
            }
            point -= weight;
        }
    }

    fn carry_out(&mut self, thread: ThreadId) {
        self.lengths[thread.index()] += 1;
        let event = self.pending[thread.index()];
        if self.profiling {
            self.fresh.census.count(thread, &event);
        } else if in_focus(self.focus, &event) {
            self.left.set(thread, self.left.get(thread).saturating_sub(1));
            self.intended = None;
            self.dull = 0;
        } else {
            self.dull += if event.kind.is_idle() { IDLE_STEPS } else { 1 };
        }
    }
}

/// Adds the events of each thread to its parent's, youngest first, so that grandchildren reach grandparents.
fn with_descendants(lengths: &[u64], parents: &[u32]) -> Vec<u64> {
    let mut sums = lengths.to_vec();
    for child in (1..sums.len()).rev() {
        let parent = parents.get(child).map_or(child, |&parent| parent as usize);
        if parent < child {
            sums[parent] += sums[child];
        }
    }
    sums
}

impl<S: Source> Strategy for Surw<S> {
    fn plan(&mut self, run: Run) -> Option<RunParameters> {
        let mut parameters = RunParameters::of(match self.selection {
            Selection::Drawn => "surw",
            Selection::All => "surw:focus=all",
        });
        self.planned_until = self.planned_until.max(run.index.saturating_add(1));
        let whole = self.known.is_whole();
        let profile = if whole { &self.known } else { &self.fresh };
        parameters.threads = profile.lengths.len() as u32;
        parameters.steps = profile.lengths.iter().sum();
        parameters.parents.clone_from(&profile.parents);
        parameters.profiling = !whole || self.outdated && self.asked < PROFILING_RUNS;
        if parameters.profiling {
            self.asked += 1;
        } else {
            let candidates = match self.selection {
                Selection::Drawn => profile.census.candidates(),
                Selection::All => Vec::new(),
            };
            let mut stream = ChaCha::new();
            stream.begin(run.split(FOCUS_STREAM));
            // All events are one of the candidates.
            parameters.focus = candidates.get(stream.below(candidates.len() as u64 + 1) as usize).copied();
            parameters.lengths = match parameters.focus {
                Some(focus) => profile.census.lengths(focus, profile.lengths.len()),
                None => profile.lengths.clone(),
            };
        }
        Some(parameters)
    }

    fn begin(&mut self, run: Run, parameters: &RunParameters) {
        self.source.begin(run);
        self.focus = parameters.focus;
        self.profiling = parameters.profiling;
        self.valid = run.index >= self.valid_from;
        self.left.clear();
        self.planned = with_descendants(&parameters.lengths, &parameters.parents);
        self.pending.clear();
        self.free.clear();
        self.waiting.clear();
        self.intended = None;
        self.dull = 0;
        self.patience = PATIENCE_LEAST.max(parameters.steps.saturating_mul(2));
        self.lengths.clear();
        self.parents.clear();
        if self.profiling {
            self.fresh.census.begin();
        }
    }

    fn spawned(&mut self, thread: ThreadId, parent: Option<ThreadId>) {
        let threads = self.pending.len().max(thread.index() + 1);
        self.pending.resize(threads, Event::local(EventKind::Yield));
        self.lengths.resize(threads, 0);
        self.parents.resize(threads, 0);
        self.parents[thread.index()] = parent.unwrap_or(thread).0;
        self.free.reserve(thread);
        self.waiting.reserve(thread);
        self.left.reserve(thread);
        let weight = self.planned.get(thread.index()).copied().unwrap_or(1);
        // A draw already made is shared with the newcomer as if it had been made now: between a parent and its
        // child, since the parent was drawn for both, and between all threads when nobody answers for this one.
        let share = match parent {
            Some(parent) => {
                let before = self.left.get(parent);
                self.left.set(parent, before.saturating_sub(weight));
                (self.intended == Some(parent)).then_some(before)
            }
            None => self.intended.map(|_| self.left.total() + weight),
        };
        if share.is_some_and(|share| self.source.below(share.max(1)) < weight) {
            self.intended = Some(thread);
        }
        self.left.set(thread, weight);
    }

    fn ready(&mut self, thread: ThreadId, next: Event) {
        if thread.index() >= self.pending.len() {
            self.spawned(thread, None);
        }
        self.pending[thread.index()] = next;
        if self.interesting(&next) {
            self.free.remove(thread);
            self.waiting.insert(thread);
            if self.left.get(thread) == 0 {
                self.left.set(thread, 1);
            }
        } else {
            self.waiting.remove(thread);
            self.free.insert(thread);
        }
    }

    fn blocked(&mut self, thread: ThreadId) {
        self.free.remove(thread);
        self.waiting.remove(thread);
    }

    fn finished(&mut self, thread: ThreadId) {
        self.blocked(thread);
        self.left.set(thread, 0);
        if self.intended == Some(thread) {
            self.intended = None;
        }
    }

    fn pick(&mut self) -> Option<ThreadId> {
        if self.intended.is_none() && !self.profiling {
            let point = self.source.below(self.left.total());
            self.intended = self.left.at(point);
        }
        let stuck = self.free.is_empty() || self.dull > self.patience;
        if stuck
            && !self.waiting.is_empty()
            && !self.intended.is_some_and(|thread| self.waiting.contains(thread))
        {
            self.intend_waiting();
            self.dull = 0;
        }
        let intended = self.intended.filter(|&thread| self.waiting.contains(thread));
        let choices = self.free.len() + usize::from(intended.is_some());
        let place = if choices > 1 { self.source.below(choices as u64) as usize } else { 0 };
        let chosen = self.free.as_slice().get(place).copied().or(intended)?;
        self.carry_out(chosen);
        Some(chosen)
    }

    fn end(&mut self, report: &RunReport<'_>) {
        let wanted = self.outdated || !self.known.is_whole();
        if !self.profiling || !self.valid || !wanted {
            return;
        }
        if report.outcome == Outcome::Cut {
            // Another one in its place.
            self.asked = self.asked.saturating_sub(1);
            return;
        }
        self.fresh.take(&self.lengths, &self.parents);
        if self.fresh.is_whole() {
            self.known = std::mem::take(&mut self.fresh);
            self.outdated = false;
        }
    }

    fn steps_changed(&mut self) {
        self.fresh = Profile::default();
        self.outdated = self.known.is_whole();
        self.asked = 0;
        self.valid_from = self.planned_until;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::ObjectId;
    use crate::run::Seed;

    const RUN: u64 = 3;

    /// Two threads of which each makes one event on `object`.
    fn walk(surw: &mut Surw, index: u64, object: ObjectId) -> RunParameters {
        let run = Run { seed: Seed(RUN), index };
        let parameters = surw.plan(run).expect("SURW is never exhausted");
        make(surw, run, &parameters, object);
        parameters
    }

    fn make(surw: &mut Surw, run: Run, parameters: &RunParameters, object: ObjectId) {
        surw.begin(run, parameters);
        for thread in [ThreadId(0), ThreadId(1)] {
            surw.spawned(thread, None);
            surw.ready(thread, Event::access(EventKind::PlainWrite, object.0, 8));
        }
        while let Some(thread) = surw.pick() {
            surw.finished(thread);
        }
        surw.end(&RunReport { outcome: Outcome::Passed, steps: 2, lengths: &[], news: false });
    }

    #[test]
    fn what_becomes_a_step_can_be_focused_on() {
        let (before, after) = (ObjectId(1), ObjectId(2));
        let mut surw = Surw::new(Selection::Drawn);
        assert!((0..2).all(|index| walk(&mut surw, index, before).profiling));
        let focused = |parameters: &RunParameters| match parameters.focus {
            Some(Focus::Object(object)) => Some(object),
            _ => None,
        };
        let early: Vec<_> = (2..100).filter_map(|index| focused(&walk(&mut surw, index, before))).collect();
        assert!(!early.is_empty() && early.iter().all(|&object| object == before));
        // A run that was planned before says nothing of the steps that there are now.
        let stale = Run { seed: Seed(RUN), index: 100 };
        let planned = RunParameters { profiling: true, ..surw.plan(stale).unwrap() };
        surw.steps_changed();
        make(&mut surw, stale, &planned, before);
        // Two runs are counted anew; what is planned before they are heard is planned as before.
        let ahead: Vec<RunParameters> =
            (101..110).map(|index| surw.plan(Run { seed: Seed(RUN), index }).unwrap()).collect();
        assert_eq!(
            ahead.iter().map(|one| one.profiling).collect::<Vec<_>>(),
            [&[true; 2][..], &[false; 7]].concat()
        );
        assert!(ahead.iter().filter_map(focused).all(|object| object == before));
        for (index, parameters) in (101..103).zip(&ahead) {
            make(&mut surw, Run { seed: Seed(RUN), index }, parameters, after);
        }
        let late: Vec<_> = (110..210).filter_map(|index| focused(&walk(&mut surw, index, after))).collect();
        assert!(!late.is_empty() && late.iter().all(|&object| object == after));
    }
}
