//! Alarms: moments at which something happens that no thread has to be scheduled for.
//!
//! A wait with a deadline may end whenever the strategy says so: the processor may have been busy for that long. But the
//! timer whose signal interrupts a process is the kernel's, and it is never busy: no wait ends by its deadline while an alarm
//! of an earlier moment has not gone off.

use super::{Scheduler, TimeoutPolicy};
use crate::clock::Moment;
use crate::thread::State;

/// The alarms that are set, each with a number of the caller's.
#[derive(Debug, Default)]
pub(super) struct Alarms(Vec<(usize, Moment)>);

impl Alarms {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Whether an alarm goes off before that moment.
    pub(super) fn any_before(&self, moment: Moment) -> bool {
        self.0.iter().any(|&(_, alarm)| alarm < moment)
    }
}

impl Scheduler {
    /// Sets an alarm for the waits that begin from now on, or sets it anew, or takes it back. Waits that it stopped may end.
    pub fn set_alarm(&mut self, number: usize, moment: Option<Moment>) {
        let before = self.alarms.0.len();
        self.alarms.0.retain(|&(known, _)| known != number);
        if self.alarms.0.len() < before && self.policy == TimeoutPolicy::Choice {
            let stopped: Vec<_> = self.deadlines.iter().copied().collect();
            for (deadline, thread) in stopped {
                if self.threads[thread.index()].state == State::Blocked && !self.alarms.any_before(deadline) {
                    self.deadlines.remove(&(deadline, thread));
                    self.offer_timeout(thread);
                }
            }
        }
        self.alarms.0.extend(moment.map(|moment| (number, moment)));
    }

    /// Lets the first deadline pass although threads are away that may come back before it: they have been for long.
    /// False if there is none.
    pub fn expire_first(&mut self) -> bool {
        let Some((moment, thread)) = self.deadlines.pop_first() else { return false };
        self.clock.advance_to(moment);
        self.offer_timeout(thread);
        true
    }

    /// Ends the wait whose deadline is next if it began long ago: others have worked since then for as long as a program does that is to stop
    /// when a sleep is over, which few others do.
    pub fn expire_overdue(&mut self) -> bool {
        const LONG: u64 = 20_000;
        let first = self.deadlines.first().map(|&(_, thread)| self.threads[thread.index()].blocked_at);
        first.is_some_and(|step| self.steps.saturating_sub(step) >= LONG) && self.expire_first()
    }

    /// Whether somebody waits for time to pass.
    pub fn has_deadlines(&self) -> bool {
        !self.deadlines.is_empty()
    }
}
