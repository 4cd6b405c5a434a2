//! Condition variables. The real one is never waited on by logical threads, so it has no waiters among them. Which waiter a
//! signal wakes is the one that has waited longest.

use core::ffi::c_int;

use waylay_schedule::{Event, EventKind, ObjectId};
use waylay_scheduler::{Key, Moment, Shares};

use crate::platform::Thread;
use crate::point::{Waited, event_at, step, wait};
use crate::posix::mutex::{Mutex, give_back, lock, relock, take_back};
use crate::token::Token;
use crate::{edge, outside};

/// What a wait does that was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It goes on.
    Waits,
    /// It ends as if it had been woken: the caller looks.
    Returns,
    /// The thread ends, once it has the mutex.
    Ends,
}

/// A condition variable of the program, which exists for as long as there is such a value of it.
pub trait Condition: Copy {
    /// Who waits.
    type Thread: Thread;

    /// Its address.
    fn key(self) -> Key;

    /// Wakes one thread that waits in the real one, or all.
    fn wake_others(self, all: bool);

    /// The wait of `me` was interrupted.
    fn interrupted(self, me: &mut Token<Self::Thread>) -> Then;

    /// `me` ends, if it was asked to.
    fn end(_me: &mut Token<Self::Thread>) {}

    /// Whether processes that are not under control may signal it.
    fn is_beyond(self) -> bool {
        false
    }
}

/// Waits as long as it takes or until the deadline.
pub fn wait_on<C: Condition, M: Mutex<Thread = C::Thread>>(
    me: &mut Token<C::Thread>,
    condition: C,
    mutex: M,
    deadline: Option<Moment>,
) -> c_int {
    let key = condition.key();
    let event = Event::cond_wait(ObjectId(key.0 as u64), ObjectId(mutex.key().0 as u64));
    C::end(me);
    step(me, event);
    let error = give_back(me, mutex);
    if error != 0 {
        return error;
    }
    loop {
        match wait(me, event, key, Shares::ALL, deadline, Some(relock(mutex))) {
            Waited::Done => {
                edge::takes_over(me, key);
                return take_back(me, mutex);
            }
            Waited::TimedOut => {
                return match lock(me, mutex, None) {
                    0 => M::TIMED_OUT,
                    error => error,
                };
            }
            Waited::Interrupted => match condition.interrupted(me) {
                Then::Waits => {}
                Then::Returns => return take_back(me, mutex),
                Then::Ends => {
                    let result = take_back(me, mutex);
                    C::end(me);
                    return result;
                }
            },
        }
    }
}

/// Ends the wait of one logical thread, or of all, and of others if there may be any.
pub fn wake<C: Condition>(me: &mut Token<C::Thread>, condition: C, all: bool) -> c_int {
    let key = condition.key();
    edge::hands_over(me, key);
    me.run().sched.wake(key, if all { u32::MAX } else { 1 }, Shares::ALL);
    if outside::may_wait() || condition.is_beyond() {
        condition.wake_others(all);
    }
    step(me, event_at(if all { EventKind::CondBroadcast } else { EventKind::CondSignal }, key));
    0
}
