//! Barriers. Arrivals are counted in the scheduler's lines; the real barrier is never entered by logical threads, so that it is
//! found unused when it is destroyed.

use core::ffi::c_int;

use waylay_schedule::EventKind;
use waylay_scheduler::{Key, Shares};

use crate::edge;
use crate::platform::Thread;
use crate::point::{Waited, event_at, step, wait};
use crate::token::Token;

/// Meets `count` threads, of which one gets `last`. Where processes that are not under control may be among them, `beyond`
/// waits for them and says so.
pub fn meet<T: Thread>(
    me: &mut Token<T>,
    key: Key,
    count: u32,
    last: c_int,
    mut beyond: impl FnMut(&mut Token<T>) -> Option<c_int>,
) -> c_int {
    let event = event_at(EventKind::BarrierWait, key);
    step(me, event);
    edge::hands_over(me, key);
    // No cancellation point, and no handler lets anybody through: whoever is woken for one of these counts anew.
    loop {
        if let Some(result) = beyond(me) {
            edge::takes_over(me, key);
            return result;
        }
        if me.run().sched.waiting_on(key) + 1 >= count {
            edge::takes_over(me, key);
            me.run().sched.wake(key, u32::MAX, Shares::ALL);
            step(me, event);
            return last;
        }
        if wait(me, event, key, Shares::ALL, None, None) != Waited::Interrupted {
            edge::takes_over(me, key);
            return 0;
        }
    }
}
