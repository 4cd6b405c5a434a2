//! Waits with a deadline: the priorities of timers.
//!
//! That a wait expires is not the waiting thread's doing: while it lasts, the thread is blocked. So the expiries of a
//! thread's waits are the steps of a second thread, its timer, with a priority of its own, which is drawn when the thread
//! first waits like this. The theorem holds with n as the number of threads and timers. Were an expiry a step of the waiting
//! thread, one that runs before all others would never stay parked.

use crate::event::ThreadId;

#[derive(Clone, Debug, Default)]
pub(super) struct Timers {
    /// Priority of each thread's timer; 0 as long as it never waited with a deadline.
    priorities: Vec<u64>,
    /// Whether the thread is in a wait that can expire: what is enabled is its timer.
    waits: Vec<bool>,
}

impl Timers {
    pub(super) fn clear(&mut self) {
        self.priorities.clear();
        self.waits.clear();
    }

    pub(super) fn reserve(&mut self, thread: ThreadId) {
        self.priorities.resize(thread.index() + 1, 0);
        self.waits.resize(thread.index() + 1, false);
    }

    /// 0 for a thread that never waited with a deadline.
    pub(super) fn priority(&self, thread: ThreadId) -> u64 {
        self.priorities.get(thread.index()).copied().unwrap_or(0)
    }

    pub(super) fn set(&mut self, thread: ThreadId, priority: u64) {
        self.priorities[thread.index()] = priority;
    }

    /// The thread's wait can expire: the priority of its timer, drawn at the first.
    pub(super) fn wait(&mut self, thread: ThreadId, draw: impl FnOnce() -> u64) -> u64 {
        self.waits[thread.index()] = true;
        let priority = &mut self.priorities[thread.index()];
        if *priority == 0 {
            *priority = draw();
        }
        *priority
    }

    #[inline]
    pub(super) fn is_waiting(&self, thread: ThreadId) -> bool {
        self.waits.get(thread.index()).is_some_and(|&waits| waits)
    }

    #[inline]
    pub(super) fn stop_waiting(&mut self, thread: ThreadId) {
        if let Some(waits) = self.waits.get_mut(thread.index()) {
            *waits = false;
        }
    }

    /// How many threads waited with a deadline.
    pub(super) fn count(&self) -> usize {
        self.priorities.iter().filter(|&&priority| priority != 0).count()
    }
}
