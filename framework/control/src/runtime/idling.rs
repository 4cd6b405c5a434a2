//! Threads that only sleep and wake again while the outside world is awaited.
//!
//! Sleeping costs no real time. A thread that sleeps in a loop while a client is awaited would make millions of steps
//! before the client's first byte is there, and nobody would look for that byte, because somebody can always run. Here the
//! world is looked at whenever nobody could run but threads whose time came, in the end for about as long as the
//! program would have slept, and such steps do not count for the limits of the run.

use waylay_runtime::handover::take_arrivals;

use super::Token;
use super::descriptors::look_outside;
use super::outside::others_may_help;
use crate::sched::Moment;

/// Rounds that cost no real time: most threads sleep a few times only before they go on.
const FREE: u64 = 64;
/// Each round behind those waits so much longer, until a wait is as long as it may be.
const GROWTH_NS: u64 = 1_000;
const MOST_NS: u64 = 1_000_000;

/// How long it has been going on.
#[derive(Debug, Default)]
pub(crate) struct Idling {
    rounds: u64,
    /// The step of the last round.
    since: u64,
    /// Rounds in which nothing was awaited that is known to be outside.
    alone: u64,
}

impl Idling {
    /// One more round at this step: how many steps it took, and how long to wait for the world.
    fn round(&mut self, steps: u64, length_ns: u64) -> (u64, u64) {
        let taken = if self.rounds > 0 { steps.saturating_sub(self.since) } else { 0 };
        self.rounds += 1;
        self.since = steps;
        let patience = self.rounds.saturating_sub(FREE) * GROWTH_NS;
        (taken, patience.min(MOST_NS).min(length_ns))
    }
}

/// The running thread began to wait for `deadline`, and the scheduler has chosen who runs; `now` is when it began.
pub(super) fn time_passes(me: &mut Token, now: Moment, deadline: Moment) {
    let runtime = me.run();
    let awaits = runtime.sched.away() > 0 || runtime.system.watches.iter().any(|watch| !watch.is_empty());
    if !runtime.sched.only_time_passes() {
        runtime.system.idling = Idling::default();
        return;
    }
    if !awaits {
        // Who waits for another process may do so for memory, of which nobody is told; that is looked for now and then.
        let alone = runtime.system.idling.alone + 1;
        runtime.system.idling = Idling { alone, ..Idling::default() };
        if alone >= FREE && alone.is_power_of_two() {
            others_may_help(me);
        }
        return;
    }
    let length = deadline.0.saturating_sub(now.0);
    let (taken, wait) = runtime.system.idling.round(runtime.sched.steps, length);
    runtime.limits.excuse(taken);
    look_outside(me, wait);
    take_arrivals(me);
}

/// The running thread is about to sleep in real time: a round that the kernel waits for.
pub(super) fn sleeps_for_real(me: &mut Token) {
    let runtime = me.run();
    if !runtime.sched.is_alone() {
        runtime.system.idling = Idling::default();
        return;
    }
    let (taken, _) = runtime.system.idling.round(runtime.sched.steps, 0);
    runtime.limits.excuse(taken);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_those_who_sleep_again_and_again_wait_and_no_longer_than_they_sleep() {
        let mut idling = Idling::default();
        assert_eq!(idling.round(100, 5), (0, 0), "what came before counts");
        for round in 1..FREE {
            assert_eq!(idling.round(100 + 3 * round, u64::MAX), (3, 0));
        }
        let steps = 100 + 3 * FREE;
        assert_eq!(idling.round(steps, u64::MAX), (3, GROWTH_NS));
        assert_eq!(idling.round(steps + 1, 7), (1, 7));
        for _ in 0..2000 {
            idling.round(steps + 1, 1);
        }
        assert_eq!(idling.round(steps + 1, u64::MAX), (0, MOST_NS));
    }
}
