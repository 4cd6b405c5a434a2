//! Condition variables. The real one is never waited on by logical threads. Which waiter a signal reaches is the one that
//! has waited longest.

use core::ffi::c_int;

use waylay_schedule::{Event, EventKind, ObjectId};
use waylay_scheduler::{Key, Moment, Shares};

use super::mutex::{self, Mutex, lock, relock, take_back};
use super::{ETIMEDOUT, Timespec, after, moment_of};
use crate::interpose::interpose_foreign;
use crate::runtime::outside::{self, Act};
use crate::runtime::{Token, Waited, event_at, step, wait, wake};
use crate::watch::edge;

type Condition = isize;

unsafe fn wait_on(
    me: &mut Token,
    condition: *mut Condition,
    mutex: *mut Mutex,
    deadline: Option<Moment>,
) -> c_int {
    let key = Key(condition as usize);
    let event = Event::cond_wait(ObjectId(key.0 as u64), ObjectId(mutex as u64));
    // SAFETY: by the caller's promise.
    unsafe {
        step(me, event);
        let error = mutex::unlock(me, mutex);
        if error != 0 {
            return error;
        }
        match wait(me, event, key, Shares::ALL, deadline, Some(relock(mutex))) {
            Waited::TimedOut => match lock(me, mutex, None) {
                0 => ETIMEDOUT,
                error => error,
            },
            Waited::Done | Waited::Interrupted => {
                edge::takes_over(me, key);
                take_back(me, mutex)
            }
        }
    }
}

/// A thread outside the schedule is about to wait, and frees the mutex.
fn wait_outside(mutex: *mut Mutex) {
    outside::waits();
    outside::did(Key(mutex as usize), Act::Freed);
}

/// `me` ends waits of logical threads, and of others if there may be any.
unsafe fn wake_up(
    me: &mut Token,
    condition: *mut Condition,
    count: u32,
    kind: EventKind,
    others: impl FnOnce(),
) {
    let key = Key(condition as usize);
    edge::hands_over(me, key);
    wake(me, key, count);
    if outside::may_wait() {
        others();
    }
    step(me, event_at(kind, key));
}

interpose_foreign! {
    fn pthread_cond_wait(condition: *mut Condition, mutex: *mut Mutex) -> c_int
        = { wait_outside(mutex); real::pthread_cond_wait(condition, mutex) }, |me| {
        wait_on(me, condition, mutex, None)
    }
    fn pthread_cond_timedwait(condition: *mut Condition, mutex: *mut Mutex, until: *const Timespec) -> c_int
        = { wait_outside(mutex); real::pthread_cond_timedwait(condition, mutex, until) }, |me| {
        let deadline = moment_of(me, until);
        wait_on(me, condition, mutex, Some(deadline))
    }
    fn pthread_cond_timedwait_relative_np(condition: *mut Condition, mutex: *mut Mutex, span: *const Timespec) -> c_int
        = { wait_outside(mutex); real::pthread_cond_timedwait_relative_np(condition, mutex, span) }, |me| {
        let deadline = after(me, span);
        wait_on(me, condition, mutex, Some(deadline))
    }
    fn pthread_cond_signal(condition: *mut Condition) -> c_int = {
        outside::did(Key(condition as usize), Act::Woken(1));
        real::pthread_cond_signal(condition)
    }, |me| {
        wake_up(me, condition, 1, EventKind::CondSignal, || { real::pthread_cond_signal(condition); });
        0
    }
    fn pthread_cond_broadcast(condition: *mut Condition) -> c_int = {
        outside::did(Key(condition as usize), Act::Woken(u32::MAX));
        real::pthread_cond_broadcast(condition)
    }, |me| {
        wake_up(me, condition, u32::MAX, EventKind::CondBroadcast, || { real::pthread_cond_broadcast(condition); });
        0
    }
}
