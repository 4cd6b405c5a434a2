//! POS: partial order sampling.
//!
//! "Partial Order Aware Concurrency Sampling", Yuan, Yang and Gu, CAV 2018. Every pending event has a priority
//! drawn independently and uniformly; the enabled event of greatest priority runs, and every enabled event that
//! races with it (touches the same object in a way that does not commute) has its priority drawn anew. The more
//! executions are equivalent up to commuting independent events, the less they crowd out the others: unlike in a
//! random walk, steps that commute do not change the odds of the order of those that do not. Needs neither n nor k.
//!
//! Deviations: every `PATIENCE` choices all priorities are drawn anew. A thread that spins draws one with every step and
//! the one it waits for keeps its own, so with a priority of 10⁻⁷ that would wait for ten million steps; runs shorter
//! than this, and the paper's argument about them, are not touched. Races are decided by [`Event::conflicts`], which is conservative where the
//! controller cannot name an object.

use crate::conflicts::ConflictIndex;
use crate::event::{Event, EventKind, ObjectId, ThreadId};
use crate::run::{Run, RunParameters, RunReport};
use crate::source::{ChaCha, Source};
use crate::strategy::Strategy;
use crate::tournament::Tournament;

/// Up to this many threads a scan over their places is cheaper than keeping the index.
const SCANNED: usize = 16;

/// Choices after which nobody keeps a priority: many times what small programs have, and few compared with the limit at which
/// a run counts as endless.
const PATIENCE: u32 = 20_000;

/// The place of an event that conflicts with nothing.
const NOWHERE: u64 = u64::MAX - 1;
/// The place of an event that has to be looked at closely.
const ANYWHERE: u64 = u64::MAX;

/// Where an event is, roughly: events in different places do not conflict unless one is anywhere.
#[inline]
fn place(event: &Event) -> u64 {
    let last = event.object.0.wrapping_add(u64::from(event.extent.max(1)) - 1);
    let wide = (event.object.0 >> 3 != last >> 3) | (event.also != ObjectId::NONE);
    if event.is_local() {
        NOWHERE
    } else if wide | (event.object == ObjectId::UNKNOWN) {
        ANYWHERE
    } else {
        event.object.0 >> 3
    }
}

/// Partial order sampling.
#[derive(Clone, Debug)]
pub struct Pos<S = ChaCha> {
    source: S,
    enabled: Tournament,
    pending: Vec<Event>,
    /// The places of the pending events, of the first threads only; nowhere while a thread is not enabled.
    places: [u64; SCANNED],
    /// The priority of the pending event; 0 when it has to be drawn.
    priorities: Vec<u64>,
    /// Enabled threads whose priority has to be drawn before the next choice.
    stale: Vec<ThreadId>,
    index: ConflictIndex,
    /// Choices until all priorities are drawn anew.
    patience: u32,
}

impl Pos {
    /// POS that draws from ChaCha8.
    pub fn new() -> Pos {
        Pos::with_source(ChaCha::new())
    }
}

impl Default for Pos {
    fn default() -> Self {
        Pos::new()
    }
}

impl<S: Source> Pos<S> {
    /// POS that draws from `source`.
    pub fn with_source(source: S) -> Pos<S> {
        Pos {
            source,
            enabled: Tournament::default(),
            pending: Vec::new(),
            places: [NOWHERE; SCANNED],
            priorities: Vec::new(),
            stale: Vec::new(),
            index: ConflictIndex::default(),
            patience: PATIENCE,
        }
    }

    #[inline]
    fn indexed(&self) -> bool {
        self.pending.len() > SCANNED
    }

    #[inline]
    fn draw(&mut self, thread: ThreadId) {
        let priority = self.source.key().max(1);
        self.priorities[thread.index()] = priority;
        self.enabled.set(thread, priority);
    }

    #[inline(always)]
    fn arrive(&mut self, thread: ThreadId, next: Event) {
        if thread.index() >= self.pending.len() {
            self.spawned(thread, None);
        }
        let priority = self.priorities[thread.index()];
        if priority != 0 && self.pending[thread.index()] == next {
            self.enabled.set(thread, priority);
        } else {
            // Field by field: the caller has just put the event together, and a copy in larger pieces than it was
            // written in would wait until those writes are done.
            let Event { object, also, extent, kind, place } = next;
            let pending = &mut self.pending[thread.index()];
            pending.object = object;
            pending.also = also;
            pending.extent = extent;
            pending.kind = kind;
            pending.place = place;
            self.draw(thread);
        }
        self.set_place(thread, place(&next));
        if self.indexed() {
            self.index.insert(thread, &next);
        }
    }

    #[inline(always)]
    fn choose(&mut self) -> Option<ThreadId> {
        self.patience -= 1;
        if self.patience == 0 {
            self.draw_all_anew();
        }
        if !self.stale.is_empty() {
            self.draw_stale();
        }
        let chosen = self.enabled.winner()?;
        self.reset_racing(chosen);
        Some(chosen)
    }

    #[cold]
    fn draw_all_anew(&mut self) {
        self.patience = PATIENCE;
        self.stale.clear();
        for (index, priority) in self.priorities.iter_mut().enumerate() {
            *priority = 0;
            self.stale.push(ThreadId(index as u32));
        }
    }

    #[cold]
    fn draw_stale(&mut self) {
        while let Some(thread) = self.stale.pop() {
            // A thread that was blocked meanwhile draws when it is enabled again.
            if self.priorities[thread.index()] == 0 && self.enabled.key(thread) != 0 {
                self.draw(thread);
            }
        }
    }

    /// Marks the priorities of everything that races with the event about to run.
    #[inline]
    fn reset_racing(&mut self, chosen: ThreadId) {
        let Pos { pending, places, priorities, stale, index, .. } = self;
        let event = &pending[chosen.index()];
        priorities[chosen.index()] = 0;
        let mut reset = |other: ThreadId| {
            if std::mem::take(&mut priorities[other.index()]) != 0 {
                stale.push(other);
            }
        };
        if pending.len() > SCANNED {
            index.conflicting(chosen, event, pending, &mut reset);
            return;
        }
        // The event is not pending any more, so it is not found racing with itself.
        let here = std::mem::replace(&mut places[chosen.index()], NOWHERE);
        if here == NOWHERE {
            return;
        }
        // Without branches until one is near: who is near depends on chance and cannot be predicted.
        let places = &places[..pending.len()];
        let near =
            places.iter().fold(here == ANYWHERE, |near, &there| near | (there == here) | (there == ANYWHERE));
        if near {
            for (other, event_of_other) in pending.iter().enumerate() {
                if places[other] != NOWHERE && event_of_other.conflicts(event) {
                    reset(ThreadId(other as u32));
                }
            }
        }
    }

    #[inline]
    fn set_place(&mut self, thread: ThreadId, place: u64) {
        if let Some(slot) = self.places.get_mut(thread.index()) {
            *slot = place;
        }
    }
}

impl<S: Source> Strategy for Pos<S> {
    fn plan(&mut self, _run: Run) -> Option<RunParameters> {
        Some(RunParameters::of("pos"))
    }

    fn begin(&mut self, run: Run, _parameters: &RunParameters) {
        self.source.begin(run);
        self.enabled.clear();
        self.pending.clear();
        self.places = [NOWHERE; SCANNED];
        self.priorities.clear();
        self.stale.clear();
        self.index.clear();
        self.patience = PATIENCE;
    }

    fn spawned(&mut self, thread: ThreadId, _parent: Option<ThreadId>) {
        self.enabled.reserve(thread);
        let threads = self.pending.len().max(thread.index() + 1);
        let was_indexed = self.indexed();
        self.pending.resize(threads, Event::local(EventKind::Yield));
        self.priorities.resize(threads, 0);
        self.stale.reserve(threads.saturating_sub(self.stale.len()));
        if self.indexed() {
            self.index.reserve(ThreadId(threads as u32 - 1), &self.pending);
            if !was_indexed {
                for (index, event) in self.pending.iter().enumerate() {
                    let thread = ThreadId(index as u32);
                    if self.enabled.key(thread) != 0 {
                        self.index.insert(thread, event);
                    }
                }
            }
        }
    }

    fn ready(&mut self, thread: ThreadId, next: Event) {
        self.arrive(thread, next);
    }

    #[inline]
    fn blocked(&mut self, thread: ThreadId) {
        self.enabled.set(thread, 0);
        self.set_place(thread, NOWHERE);
        if self.indexed() {
            self.index.remove(thread);
        }
    }

    fn finished(&mut self, thread: ThreadId) {
        self.blocked(thread);
    }

    fn pick(&mut self) -> Option<ThreadId> {
        self.choose()
    }

    /// One body for the step that is taken most often, so that the event stays in registers.
    #[inline]
    fn step(&mut self, current: ThreadId, next: Event) -> ThreadId {
        self.arrive(current, next);
        self.choose().unwrap_or(current)
    }

    fn end(&mut self, _report: &RunReport<'_>) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one thread the least key there is, once.
    struct Unlucky {
        drawn: u32,
        inner: ChaCha,
    }

    impl Source for Unlucky {
        fn begin(&mut self, run: Run) {
            self.inner.begin(run);
        }

        fn below(&mut self, bound: u64) -> u64 {
            self.inner.below(bound)
        }

        fn key(&mut self) -> u64 {
            self.drawn += 1;
            if self.drawn == 2 { 1 } else { self.inner.key() }
        }
    }

    /// After the priorities were drawn anew the thread that spins is above the other with probability 1/2 at first, and a
    /// hundred times in a row, with a draw each, with probability 1/101; here 20,000 more are allowed: 1/20,001, and the
    /// numbers are those of a fixed seed.
    #[test]
    fn a_thread_with_the_least_priority_does_not_wait_for_ever_behind_one_that_spins() {
        let mut pos = Pos::with_source(Unlucky { drawn: 0, inner: ChaCha::new() });
        let (spins, waits) = (ThreadId(0), ThreadId(1));
        for thread in [spins, waits] {
            pos.spawned(thread, None);
            pos.ready(thread, Event::local(EventKind::Yield));
        }
        let mut chosen = pos.pick().unwrap();
        let mut steps = 0;
        while chosen == spins {
            chosen = pos.step(spins, Event::local(EventKind::Yield));
            steps += 1;
            assert!(steps < 2 * PATIENCE, "it still waits");
        }
        assert!(steps >= PATIENCE - 1, "it had the least priority until then: {steps}");
    }
}
