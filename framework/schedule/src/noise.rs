//! Noise: now and then a thread pauses at a synchronisation point.
//!
//! The random sleeps that section 5.1.2 of "A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs"
//! compares PCT with: at every synchronisation event a pause with probability 1/50, which worked best there. No
//! guarantee. Two forms:
//!
//! - [`Pauses`] for threads that run freely: each thread asks at its own synchronisation points and sleeps for real;
//! - [`Noise`], the same idea where one thread runs at a time: the pause is a number of steps others may take.
//!
//! Deviations: the length of a pause is not given in the paper; it is uniform up to a limit.

use std::fmt;
use std::time::Duration;

use crate::event::{Event, EventKind, ThreadId};
use crate::rotation::Rotation;
use crate::run::{Run, RunParameters, RunReport};
use crate::source::{ChaCha, Source};
use crate::strategy::Strategy;

/// What can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoiseOptions {
    /// A pause at one in this many synchronisation events.
    pub one_in: u64,
    /// The longest pause in steps, where one thread runs at a time.
    pub steps: u64,
    /// The longest pause, where threads run freely.
    pub longest: Duration,
}

impl Default for NoiseOptions {
    fn default() -> Self {
        NoiseOptions { one_in: 50, steps: 100, longest: Duration::from_millis(10) }
    }
}

impl fmt::Display for NoiseOptions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "noise:one-in={},steps={},sleep={}us", self.one_in, self.steps, self.longest.as_micros())
    }
}

/// Whether threads communicate through the event: everything but plain accesses and local steps.
fn is_synchronisation(event: &Event) -> bool {
    !matches!(event.kind, EventKind::PlainRead | EventKind::PlainWrite) && !event.is_local()
}

/// The pauses of one freely running thread.
#[derive(Clone, Debug)]
pub struct Pauses {
    source: ChaCha,
    options: NoiseOptions,
}

impl Pauses {
    /// The pauses of this thread in this run; threads do not share a stream, since they do not take turns.
    pub fn new(run: Run, thread: ThreadId, options: NoiseOptions) -> Pauses {
        let mut source = ChaCha::new();
        source.begin(run.split(0x1_0000_0000 + u64::from(thread.0)));
        Pauses { source, options }
    }

    /// How long to sleep before this event, if at all.
    pub fn before(&mut self, event: &Event) -> Option<Duration> {
        if !is_synchronisation(event) || !self.source.one_in(self.options.one_in) {
            return None;
        }
        let longest = u64::try_from(self.options.longest.as_nanos()).unwrap_or(u64::MAX);
        Some(Duration::from_nanos(1 + self.source.below(longest.max(1))))
    }
}

/// Noise where one thread runs at a time: threads take turns only when one pauses, blocks or ends.
#[derive(Clone, Debug)]
pub struct Noise<S = ChaCha> {
    source: S,
    options: NoiseOptions,
    rotation: Rotation,
    step: u64,
    /// Paused threads and the step at which they wake; they are enabled but not in the rotation.
    paused: Vec<(u64, ThreadId, Event)>,
}

impl Noise {
    /// Noise that draws from ChaCha8.
    pub fn new(options: NoiseOptions) -> Noise {
        Noise::with_source(options, ChaCha::new())
    }
}

impl<S: Source> Noise<S> {
    /// Noise that draws from `source`.
    pub fn with_source(options: NoiseOptions, source: S) -> Noise<S> {
        Noise { source, options, rotation: Rotation::default(), step: 0, paused: Vec::new() }
    }

    fn forget(&mut self, thread: ThreadId) {
        self.rotation.remove(thread);
        self.paused.retain(|&(_, paused, _)| paused != thread);
    }

    fn wake(&mut self) {
        // Where nothing else can run, time passes until the first pause is over.
        if self.rotation.is_empty()
            && let Some(first) = self.paused.iter().map(|&(until, ..)| until).min()
        {
            self.step = self.step.max(first);
        }
        let (step, rotation) = (self.step, &mut self.rotation);
        self.paused.retain(|&(until, thread, event)| {
            if until <= step {
                rotation.ready(thread, event);
            }
            until > step
        });
    }
}

impl<S: Source> Strategy for Noise<S> {
    fn plan(&mut self, _run: Run) -> Option<RunParameters> {
        Some(RunParameters::of(self.options.to_string()))
    }

    fn begin(&mut self, run: Run, _parameters: &RunParameters) {
        self.source.begin(run);
        self.rotation.clear();
        self.paused.clear();
        self.step = 0;
    }

    fn spawned(&mut self, thread: ThreadId, _parent: Option<ThreadId>) {
        self.rotation.reserve(thread);
        self.paused.reserve((thread.index() + 1).saturating_sub(self.paused.len()));
    }

    fn ready(&mut self, thread: ThreadId, next: Event) {
        self.forget(thread);
        if is_synchronisation(&next) && self.source.one_in(self.options.one_in) {
            let until = self.step + 1 + self.source.below(self.options.steps.max(1));
            self.paused.push((until, thread, next));
        } else {
            self.rotation.ready(thread, next);
        }
    }

    fn blocked(&mut self, thread: ThreadId) {
        self.forget(thread);
    }

    fn finished(&mut self, thread: ThreadId) {
        self.forget(thread);
    }

    fn pick(&mut self) -> Option<ThreadId> {
        self.wake();
        let chosen = self.rotation.at(0)?;
        self.rotation.turn(chosen);
        self.step += 1;
        Some(chosen)
    }

    fn end(&mut self, _report: &RunReport<'_>) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::ObjectId;

    /// 50,000 events at 1/50: the count is within 6 standard deviations (188) of 1,000 except with probability
    /// 2·10⁻⁹; the seed is fixed, so the test cannot fail by chance at all.
    #[test]
    fn pauses_come_at_the_stated_rate_and_length() {
        let options = NoiseOptions::default();
        let mut pauses = Pauses::new(Run::default(), ThreadId(3), options);
        let lock = Event::new(EventKind::MutexLock, ObjectId(8));
        let taken: Vec<Duration> = (0..50_000).filter_map(|_| pauses.before(&lock)).collect();
        assert!((812..=1188).contains(&taken.len()), "{}", taken.len());
        assert!(taken.iter().all(|pause| *pause <= options.longest && !pause.is_zero()));
        let plain = Event::access(EventKind::PlainRead, 8, 8);
        assert!((0..1000).all(|_| pauses.before(&plain).is_none()));
    }
}
