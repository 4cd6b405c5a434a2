//! Who goes on when the main thread of a run in a host has come to its end and others are still there. Pure.

use waylay_schedule::{EventKind, ThreadId};

use super::scheduler::{Choice, Scheduler};
use super::thread::State;

impl Scheduler {
    /// Chooses while the main thread waits for the others. If they cannot end, because they wait for something that nobody
    /// will bring, it goes on without them. A thread that waits for a lock is not idle: then it is a deadlock after all.
    pub fn choose_without_the_rest(&mut self) -> Choice {
        match self.choose() {
            Choice::Deadlock if self.somebody_waits_for_a_lock() => Choice::Deadlock,
            Choice::Idle | Choice::Deadlock => {
                self.interrupt(ThreadId::MAIN);
                self.choose()
            }
            other => other,
        }
    }

    fn somebody_waits_for_a_lock(&self) -> bool {
        const LOCKS: [EventKind; 3] = [EventKind::MutexLock, EventKind::RwReadLock, EventKind::RwWriteLock];
        (0..self.thread_count()).any(|index| {
            let thread = self.thread(ThreadId(index as u32));
            thread.state == State::Blocked && LOCKS.contains(&thread.pending.kind)
        })
    }
}
