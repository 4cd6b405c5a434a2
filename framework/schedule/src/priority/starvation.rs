//! Signs that a thread waits by going on and on, and threads that could run and do not.
//!
//! Idle steps show soon that a thread spins. Work does not look like waiting, whether one thread does it or several that
//! hand over to each other, so there it takes the time that the waiting thread has not run: several times the steps of a
//! whole earlier run, which no schedule of a program with k steps reaches. So the theorem is not touched where k is right.
//! Those are lowered that took their share of that time: a thread that just came to do what is waited for has not.
//!
//! Who is lowered, and when it is looked for that, is up to [`Priorities`](super::Priorities).

use super::length::Length;
use crate::event::{Event, EventKind, ObjectId, ThreadId};

/// Idle steps in a row (yields, sleeps, timeouts) that are free: a thread that yields a few times is polite.
pub(super) const FREE_IDLE: u32 = 3;
/// Loads of one object in a row, with nothing else in between, after which they count as idle steps.
const FREE_LOADS: u32 = 64;
/// A thread that could run and did not for this many times the steps of a whole earlier run is starved.
const PATIENCE_FACTOR: u64 = 4;
/// The least patience, for runs about which nothing is known.
const PATIENCE_LEAST: u64 = 1000;
/// The patience of a bare run: one would do where k is right.
const BARE_PATIENCE_FACTOR: u64 = 2;
/// Idle steps of one thread in a row after which even a bare run takes it to spin, as a systematic search does: no run may
/// come near the steps without change that are called a livelock.
pub const MOST_IDLE: u32 = 20_000;

/// For how many counted steps a thread may be kept waiting in a run that was planned with so many.
pub(super) fn patience(steps: u64, bare: bool) -> u64 {
    match steps {
        // Beside the factor a little for runs of a few steps.
        steps if bare && steps > 0 => steps.saturating_mul(BARE_PATIENCE_FACTOR).saturating_add(64),
        steps => steps.saturating_mul(PATIENCE_FACTOR).max(PATIENCE_LEAST),
    }
}

/// What the running thread did in a row that only a thread does that waits.
#[derive(Clone, Debug)]
pub(super) struct Idling {
    idle: u32,
    loads: u32,
    loaded: ObjectId,
    /// Spinning threads are not taken for such yet: no thread was starved so far.
    pub(super) lenient: bool,
}

impl Idling {
    pub(super) fn new() -> Idling {
        Idling { idle: 0, loads: 0, loaded: ObjectId::NONE, lenient: false }
    }

    pub(super) fn clear(&mut self) {
        self.idle = 0;
        self.loads = 0;
    }

    pub(super) fn steps(&self) -> u64 {
        u64::from(self.idle) + u64::from(self.loads)
    }

    /// The running thread is about to do `next`; says whether it seems to spin.
    #[inline(always)]
    pub(super) fn notice(&mut self, next: Event) -> bool {
        match next.kind {
            EventKind::AtomicLoad if next.object == self.loaded => {
                self.loads += 1;
                self.loads > FREE_LOADS && self.is_idle_for(self.loads)
            }
            EventKind::AtomicLoad => {
                self.loaded = next.object;
                self.loads = 1;
                false
            }
            kind if kind.is_idle() => {
                self.idle += 1;
                self.idle > FREE_IDLE && self.is_idle_for(self.idle)
            }
            _ => {
                self.loads = 0;
                false
            }
        }
    }

    /// Whether so many idle steps in a row are enough to take the thread to spin.
    fn is_idle_for(&mut self, steps: u32) -> bool {
        self.lenient &= steps < MOST_IDLE;
        !self.lenient
    }
}

/// When each thread last ran, and how much each took since it was lowered. All in counted steps but for what ends in `_at`,
/// which is in steps of the run's length.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns {
    /// Of a thread that has not run yet, when it was created.
    ran: Vec<u64>,
    ran_at: Vec<u64>,
    /// Steps of each thread since it was last lowered, but for those since it runs now.
    taken: Vec<u64>,
    /// When the running thread began to run without a break, or was lowered.
    since: u64,
    pub(super) since_at: u64,
}

impl Turns {
    pub(super) fn begin_phase(&mut self) {
        self.ran.fill(0);
        self.ran_at.fill(0);
        self.taken.fill(0);
        self.since = 0;
        self.since_at = 0;
    }

    pub(super) fn reserve(&mut self, thread: ThreadId) {
        self.ran.resize(thread.index() + 1, 0);
        self.ran_at.resize(thread.index() + 1, 0);
        self.taken.resize(thread.index() + 1, 0);
    }

    pub(super) fn created(&mut self, thread: ThreadId, length: &Length) {
        self.ran[thread.index()] = length.counted;
        self.ran_at[thread.index()] = length.now();
    }

    /// The thread stops running, and another begins.
    #[inline]
    pub(super) fn over(&mut self, thread: ThreadId, length: &Length) {
        if let Some(ran) = self.ran.get_mut(thread.index()) {
            *ran = length.counted;
            self.ran_at[thread.index()] = length.now();
            self.taken[thread.index()] += length.counted - self.since;
        }
        self.begin(length);
    }

    /// What the running thread takes from now on is counted afresh.
    #[inline]
    pub(super) fn begin(&mut self, length: &Length) {
        self.since = length.counted;
        self.since_at = length.now();
    }

    pub(super) fn lowered(&mut self, thread: ThreadId) {
        if let Some(taken) = self.taken.get_mut(thread.index()) {
            *taken = 0;
        }
    }

    pub(super) fn last(&self, thread: ThreadId) -> u64 {
        self.ran[thread.index()]
    }

    pub(super) fn last_at(&self, thread: ThreadId) -> u64 {
        self.ran_at[thread.index()]
    }

    pub(super) fn threads(&self) -> usize {
        self.ran.len()
    }

    /// Whether the running thread took its share of the time that the other one could run and did not.
    pub(super) fn took_its_share(
        &self,
        running: ThreadId,
        starved: ThreadId,
        of: u64,
        length: &Length,
    ) -> bool {
        let taken = self.taken[running.index()] + length.counted - self.since;
        taken >= (length.counted - self.ran[starved.index()]) / of.max(1)
    }
}
