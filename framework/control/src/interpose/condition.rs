//! Condition variables: `pthread_cond_*`.
//!
//! The real condition variable is never waited on, so it never has waiters; its attributes are read from it. Which
//! waiter a signal wakes is the one that has waited longest.

use libc::{clockid_t, pthread_cond_t, pthread_mutex_t, timespec};
use waylay_schedule::{Event, EventKind, ObjectId};

use super::clock::{has_deadlines, has_nanoseconds, moment_of, real_moment};
use super::mutex::{lock, note_locked, relock, take_back, unlock};
use super::waiting_call::in_kernel;
use super::{interpose, signal};
use crate::instrument::edge;
use crate::runtime::outside::{self, Act};
use crate::runtime::{Waited, event_at, step, wait, wake, Token};
use crate::sched::{Key, Moment, Shares};

/// Offset of `__wrefs` in glibc's `pthread_cond_t` (2.25 and later); bit 1 says that timeouts are monotonic.
const FLAGS: usize = 36;
const MONOTONIC: u32 = 2;
/// Bit 0 says that it was made for several processes.
const SHARED: u32 = 1;

unsafe fn clock_of(condition: *const pthread_cond_t) -> clockid_t {
    // SAFETY: inside the condition variable, which the caller vouches for.
    let flags = unsafe { condition.byte_add(FLAGS).cast::<u32>().read_volatile() };
    if flags & MONOTONIC != 0 { libc::CLOCK_MONOTONIC } else { libc::CLOCK_REALTIME }
}

/// Whether processes that are not under control may signal it.
unsafe fn is_outside(condition: *const pthread_cond_t) -> bool {
    // SAFETY: inside the condition variable, which the caller vouches for.
    let flags = unsafe { condition.byte_add(FLAGS).cast::<u32>().read_volatile() };
    flags & SHARED != 0 && outside::has_started_processes()
}

/// A wait that another process may end: libc's own, on the thread's kernel thread, with the mutex that it holds.
unsafe fn wait_outside(
    me: &mut Token,
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    deadline: Option<Moment>,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        signal::cancellation_point(me);
        let until = deadline.map(|moment| real_moment(me, moment));
        edge::unlocked(me, Key(mutex as usize));
        let result = in_kernel(me, || match &until {
            None => real::pthread_cond_wait(condition, mutex),
            Some(until) => {
                real::pthread_cond_clockwait(condition, mutex, libc::CLOCK_MONOTONIC, &raw const *until)
            }
        });
        edge::takes_over(me, Key(condition as usize));
        note_locked(me, Key(mutex as usize), 0);
        signal::cancellation_point(me);
        result
    }
}

unsafe fn wait_on(
    me: &mut Token,
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    deadline: Option<Moment>,
) -> i32 {
    let key = Key(condition as usize);
    let event = Event::cond_wait(ObjectId(key.0 as u64), ObjectId(mutex as u64));
    // SAFETY: by the caller's promise.
    unsafe {
        if is_outside(condition) {
            return wait_outside(me, condition, mutex, deadline);
        }
        signal::cancellation_point(me);
        step(me, event);
        let error = unlock(me, mutex);
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
                        0 => libc::ETIMEDOUT,
                        error => error,
                    };
                }
                Waited::Interrupted if signal::is_to_end(me.thread()) => {
                    let result = take_back(me, mutex);
                    signal::cancellation_point(me);
                    return result;
                }
                // A process was started meanwhile, which may have signalled already: the caller looks, as after every wait, and
                // waits for the process if it has to.
                Waited::Interrupted if is_outside(condition) => return take_back(me, mutex),
                // The wait goes on behind a handler.
                Waited::Interrupted => {}
            }
        }
    }
}

interpose! {
    fn pthread_cond_wait(condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> i32 = c"GLIBC_2.3.2", before outside::waits(), |me| {
        wait_on(me, condition, mutex, None)
    }

    fn pthread_cond_timedwait(
        condition: *mut pthread_cond_t,
        mutex: *mut pthread_mutex_t,
        until: *const timespec,
    ) -> i32 = c"GLIBC_2.3.2", before outside::waits(), |me| {
        if !has_nanoseconds(&*until) {
            return libc::EINVAL;
        }
        let deadline = moment_of(me, clock_of(condition), until);
        wait_on(me, condition, mutex, Some(deadline))
    }

    fn pthread_cond_clockwait(
        condition: *mut pthread_cond_t,
        mutex: *mut pthread_mutex_t,
        clock: clockid_t,
        until: *const timespec,
    ) -> i32, before outside::waits(), |me| {
        if !has_nanoseconds(&*until) || !has_deadlines(clock) {
            return libc::EINVAL;
        }
        let deadline = moment_of(me, clock, until);
        wait_on(me, condition, mutex, Some(deadline))
    }

    fn pthread_cond_signal(condition: *mut pthread_cond_t) -> i32 = c"GLIBC_2.3.2", outside outside::did(Key(condition as usize), Act::Woken(1)), |me| {
        let key = Key(condition as usize);
        edge::hands_over(me, key);
        wake(me, key, 1, Shares::ALL);
        if outside::may_wait() || is_outside(condition) {
            real::pthread_cond_signal(condition);
        }
        step(me, event_at(EventKind::CondSignal, key));
        0
    }

    fn pthread_cond_broadcast(condition: *mut pthread_cond_t) -> i32 = c"GLIBC_2.3.2", outside outside::did(Key(condition as usize), Act::Woken(u32::MAX)), |me| {
        let key = Key(condition as usize);
        edge::hands_over(me, key);
        wake(me, key, u32::MAX, Shares::ALL);
        if outside::may_wait() || is_outside(condition) {
            real::pthread_cond_broadcast(condition);
        }
        step(me, event_at(EventKind::CondBroadcast, key));
        0
    }
}
