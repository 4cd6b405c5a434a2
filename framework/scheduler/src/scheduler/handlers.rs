//! Signal handlers: they interrupt a wait, and the wait goes on behind them.
//!
//! A thread that handles a signal stands in no line, because the handler may wait for something else. Whoever ends the
//! interrupted wait meanwhile must not miss it: a wake-up of a condition variable that finds the thread in a handler is for
//! that thread, and it counts at a barrier.

use waylay_schedule::ThreadId;

use super::Scheduler;
use crate::thread::{Key, Outcome, Shares, State};

/// One interrupted wait.
#[derive(Debug)]
struct Suspension {
    thread: ThreadId,
    /// How many handlers the thread was in when it began to wait.
    handlers: u32,
    key: Key,
    shares: Shares,
    woken: bool,
}

/// The waits that handlers interrupt right now: nearly always none.
#[derive(Debug, Default)]
pub(super) struct Suspensions(Vec<Suspension>);

impl Suspensions {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn forget(&mut self, thread: ThreadId) {
        self.0.retain(|wait| wait.thread != thread);
    }

    /// Ends up to `count` of these waits; returns how many there were.
    pub(super) fn wake(&mut self, key: Key, count: u32, shares: Shares) -> u32 {
        let meant = |wait: &&mut Suspension| wait.key == key && !wait.woken && wait.shares.meets(shares);
        let mut woken = 0;
        for wait in self.0.iter_mut().filter(meant).take(count as usize) {
            wait.woken = true;
            woken += 1;
        }
        woken
    }

    pub(super) fn waiting_on(&self, key: Key) -> u32 {
        self.0.iter().filter(|wait| wait.key == key && !wait.woken).count() as u32
    }

    /// The wait of a thread in that many handlers is not interrupted any more. Whether somebody ended it.
    fn end(&mut self, thread: ThreadId, handlers: u32) -> bool {
        let of_this = |wait: &Suspension| wait.thread == thread && wait.handlers == handlers;
        let place = self.0.iter().rposition(of_this);
        place.is_some_and(|place| self.0.remove(place).woken)
    }
}

impl Scheduler {
    /// Breaks the wait of a thread off, if it waits, so that it can handle a signal.
    pub fn interrupt_for_signal(&mut self, thread: ThreadId) {
        let entry = &mut self.threads[thread.index()];
        if entry.state != State::Blocked {
            return;
        }
        // What comes behind the wait comes behind the handler, too.
        entry.then = None;
        if let (Some(key), false) = (entry.interest, entry.continues) {
            let (handlers, shares) = (entry.handlers, entry.shares);
            self.suspensions.0.push(Suspension { thread, handlers, key, shares, woken: false });
        }
        self.end_wait(thread, Outcome::Interrupted);
    }

    /// The running thread handles signals from now on. The result goes to [`end_handlers`](Self::end_handlers).
    pub fn begin_handlers(&mut self) -> Outcome {
        let outcome = self.take_outcome(self.current());
        let me = self.current();
        self.threads[me.index()].handlers += 1;
        outcome
    }

    /// The running thread goes on with what it did before. A wait that was ended meanwhile counts as never interrupted.
    pub fn end_handlers(&mut self, before: Outcome) {
        let me = self.current();
        let entry = &mut self.threads[me.index()];
        entry.handlers = entry.handlers.saturating_sub(1);
        let handlers = entry.handlers;
        let ended = before == Outcome::Interrupted && self.suspensions.end(me, handlers);
        self.threads[me.index()].outcome = if ended { Outcome::Woken } else { before };
    }
}
