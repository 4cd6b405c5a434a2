//! Waiting in real time: for what only other processes change, and beside a child that lives in real time.

use waylay_runtime::handover::take_arrivals;
use waylay_schedule::{Event, EventKind};

use super::descriptors::look_outside;
use super::outside::has_children;
use super::signals::Handled;
use super::{Token, Waited, idling, step};
use crate::sched::Moment;
use crate::sys;

/// Real pauses between two looks at what only others than us change.
const SHORTEST_NS: u64 = 50_000;
const LONGEST_NS: u64 = 1_000_000;

/// Takes something that another process may hold, which nobody here is told of: it is tried again and again, with real
/// pauses in between in which others run.
pub(crate) fn acquire_from_outside<R>(
    me: &mut Token,
    event: Event,
    deadline: Option<Moment>,
    mut attempt: impl FnMut(&mut Token) -> Option<R>,
) -> Result<R, Waited> {
    step(me, event);
    let patience = deadline.map(|deadline| deadline.0.saturating_sub(me.run().sched.clock.now().0));
    let (begun, mut length) = (sys::monotonic_ns(), SHORTEST_NS);
    loop {
        if let Some(result) = attempt(me) {
            return Ok(result);
        }
        if patience.is_some_and(|patience| sys::monotonic_ns() - begun >= patience) {
            deadline.into_iter().for_each(|deadline| me.run().sched.clock.advance_to(deadline));
            return Err(Waited::TimedOut);
        }
        pause(me, length);
        length = (2 * length).min(LONGEST_NS);
    }
}

/// Sleeps as long as it says while a child lives: the two may have agreed on that. Says how it ended, if it had to.
pub(super) fn sleeps_for_real(me: &mut Token, deadline: Moment) -> Option<Waited> {
    if !has_children() {
        return None;
    }
    // SAFETY: who has the token lives.
    unsafe {
        let now = me.run().sched.clock.now();
        idling::sleeps_for_real(me);
        let (begun, length) = (sys::monotonic_ns(), deadline.0.saturating_sub(now.0));
        loop {
            let slept = sys::monotonic_ns() - begun;
            if slept >= length {
                break;
            }
            pause(me, (length - slept).min(LONGEST_NS));
            if (*me.thread()).handled != Handled::Nothing {
                return Some(Waited::Interrupted);
            }
        }
        me.run().sched.clock.advance_to(deadline);
        Some(Waited::Done)
    }
}

/// Lets real time pass for something outside, and others run if they can; for a short while only in that case.
fn pause(me: &mut Token, nanoseconds: u64) {
    let alone = me.run().sched.is_alone();
    look_outside(me, if alone { nanoseconds } else { nanoseconds.min(SHORTEST_NS) });
    take_arrivals(me);
    step(me, Event::local(EventKind::Yield));
}
