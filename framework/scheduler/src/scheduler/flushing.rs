//! Stores that become visible to others later than they are made, as on a processor with store buffers.
//!
//! What lets the oldest store of a thread become visible is, for the strategy, a second thread of that thread that does
//! nothing else: its *flusher*. It is enabled while stores wait, and each is one step of it. So every strategy decides about
//! them as it decides about threads, n counts it as a thread and k its flushes as steps. A flusher has a number like a thread,
//! from the first store that waits on, but no code: a step of it is carried out on the spot, by whoever asked who runs next.

use waylay_schedule::{Event, EventKind, Strategy, ThreadId};

use super::Scheduler;
use crate::thread::{State, Thread};

/// Lets the oldest store that this thread has waiting become visible; returns what the next one would be, if there is one.
pub type Flush = fn(ThreadId) -> Option<Event>;

/// Who flushes for whom.
#[derive(Debug, Default)]
pub(super) struct Flushers {
    /// By the thread whose stores wait.
    of: Vec<Option<ThreadId>>,
    /// By the flusher.
    owners: Vec<Option<ThreadId>>,
    flush: Option<Flush>,
    /// A flusher made the last step, so that the running thread begins a new stretch of the schedule.
    interrupted: bool,
}

impl Flushers {
    pub(super) fn clear(&mut self) {
        self.of.clear();
        self.owners.clear();
        self.interrupted = false;
    }

    /// Whether any store has waited in this run.
    #[inline]
    pub(super) fn are_there(&self) -> bool {
        !self.owners.is_empty()
    }

    fn of(&self, thread: ThreadId) -> Option<ThreadId> {
        self.of.get(thread.index()).copied().flatten()
    }

    #[inline]
    fn owner(&self, flusher: ThreadId) -> Option<ThreadId> {
        self.owners.get(flusher.index()).copied().flatten()
    }

    #[inline]
    pub(super) fn take_interruption(&mut self) -> bool {
        core::mem::take(&mut self.interrupted)
    }
}

fn put(list: &mut Vec<Option<ThreadId>>, at: ThreadId, what: ThreadId) {
    if list.len() <= at.index() {
        list.resize(at.index() + 1, None);
    }
    list[at.index()] = Some(what);
}

impl Scheduler {
    /// Stores of a thread wait, of which `oldest` is what becomes visible first. Returns the number of its flusher when that is
    /// a new one. `flush` carries its steps out.
    pub fn stores_wait(&mut self, thread: ThreadId, oldest: Event, flush: Flush) -> Option<ThreadId> {
        self.flushers.flush = Some(flush);
        let mut made = None;
        let flusher = self.flushers.of(thread).unwrap_or_else(|| {
            let flusher = ThreadId(self.threads.len() as u32);
            let mut entry = Thread::new(oldest);
            // It is no thread that could be waited for, woken or described.
            entry.state = State::Finished;
            self.threads.push(entry);
            put(&mut self.flushers.of, thread, flusher);
            put(&mut self.flushers.owners, flusher, thread);
            self.strategy.spawned(flusher, Some(thread));
            made = Some(flusher);
            flusher
        });
        self.threads[flusher.index()].pending = oldest;
        self.strategy.ready(flusher, oldest);
        made
    }

    /// No store of a thread waits any more.
    pub fn no_store_waits(&mut self, thread: ThreadId) {
        if let Some(flusher) = self.flushers.of(thread) {
            self.strategy.blocked(flusher);
        }
    }

    /// A number that is a flusher's is not a thread's: whose flusher it is.
    pub fn flushes_for(&self, thread: ThreadId) -> Option<ThreadId> {
        self.flushers.owner(thread)
    }

    /// How many flushers there are.
    pub fn flushers(&self) -> usize {
        self.flushers.owners.iter().flatten().count()
    }

    /// A thread is gone, and none of its stores wait.
    pub(super) fn end_flusher(&mut self, thread: ThreadId) {
        if let Some(flusher) = self.flushers.of(thread) {
            self.strategy.finished(flusher);
        }
    }

    /// Makes the step of a flusher that was picked; false when that is a thread.
    pub(super) fn flush_by(&mut self, picked: ThreadId) -> bool {
        let Some((owner, flush)) = self.flushers.owner(picked).zip(self.flushers.flush) else { return false };
        self.steps += 1;
        // Whoever looks for changes looks again.
        self.switches += 1;
        self.threads[picked.index()].steps += 1;
        if core::mem::replace(&mut self.flushers.interrupted, true) && self.recording.is_of(picked) {
            self.recording.again(picked, EventKind::StoreFlush);
        } else {
            self.recording.begin(picked, EventKind::StoreFlush);
        }
        match flush(owner) {
            Some(next) => {
                self.threads[picked.index()].pending = next;
                self.strategy.ready(picked, next);
            }
            None => self.strategy.blocked(picked),
        }
        true
    }

    /// The running thread is enabled, and this was picked: who runs once all flushers that come first have made their steps.
    #[cold]
    pub(super) fn flush_until_thread(&mut self, mut picked: ThreadId) -> ThreadId {
        while self.flush_by(picked) {
            picked = self.strategy.pick().unwrap_or(self.current());
        }
        picked
    }
}
