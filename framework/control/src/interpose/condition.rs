//! Condition variables: `pthread_cond_*`.
//!
//! The real condition variable is never waited on, so it never has waiters; its attributes are read from it. Which
//! waiter a signal wakes is the one that has waited longest.

use libc::{clockid_t, pthread_cond_t, pthread_mutex_t, timespec};
use waylay_runtime::posix::condition::{self as posix, Then, wait_on, wake};
use waylay_runtime::posix::mutex::note_locked;

use super::clock::{has_deadlines, has_nanoseconds, moment_of, real_moment};
use super::mutex::Mutex;
use super::waiting_call::in_kernel;
use super::{interpose, signal};
use crate::instrument::edge;
use crate::runtime::outside::{self, Act};
use crate::runtime::{Logical, Token};
use crate::sched::{Key, Moment};

/// Offset of `__wrefs` in glibc's `pthread_cond_t` (2.25 and later); bit 1 says that timeouts are monotonic.
const FLAGS: usize = 36;
const MONOTONIC: u32 = 2;
/// Bit 0 says that it was made for several processes.
const SHARED: u32 = 1;

/// A condition variable, by its address.
#[derive(Clone, Copy)]
struct Condition(*mut pthread_cond_t);

impl Condition {
    /// # Safety
    /// The condition variable exists for as long as this value is used.
    unsafe fn at(condition: *mut pthread_cond_t) -> Condition {
        Condition(condition)
    }

    fn flags(self) -> u32 {
        // SAFETY: inside the condition variable, which exists.
        unsafe { self.0.byte_add(FLAGS).cast::<u32>().read_volatile() }
    }

    fn clock(self) -> clockid_t {
        if self.flags() & MONOTONIC != 0 { libc::CLOCK_MONOTONIC } else { libc::CLOCK_REALTIME }
    }
}

impl posix::Condition for Condition {
    type Thread = Logical;

    fn key(self) -> Key {
        Key(self.0 as usize)
    }

    fn wake_others(self, all: bool) {
        // SAFETY: the condition variable exists.
        unsafe {
            match all {
                true => real::pthread_cond_broadcast(self.0),
                false => real::pthread_cond_signal(self.0),
            }
        };
    }

    fn interrupted(self, me: &mut Token) -> Then {
        // SAFETY: who has the token lives.
        if unsafe { signal::is_to_end(me.thread()) } {
            return Then::Ends;
        }
        // A process was started meanwhile, which may have signalled already: the caller looks, as after every wait, and waits
        // for the process if it has to. Otherwise the wait goes on behind a handler.
        if posix::Condition::is_beyond(self) { Then::Returns } else { Then::Waits }
    }

    fn end(me: &mut Token) {
        signal::cancellation_point(me);
    }

    fn is_beyond(self) -> bool {
        self.flags() & SHARED != 0 && outside::may_share()
    }
}

/// A wait that another process may end: libc's own, on the thread's kernel thread, with the mutex that it holds.
unsafe fn wait_outside(
    me: &mut Token,
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    deadline: Option<Moment>,
) -> i32 {
    signal::cancellation_point(me);
    let until = deadline.map(|moment| real_moment(me, moment));
    edge::unlocked(me, Key(mutex as usize));
    // SAFETY: by the caller's promise.
    let result = in_kernel(me, || unsafe {
        match &until {
            None => real::pthread_cond_wait(condition, mutex),
            Some(until) => {
                real::pthread_cond_clockwait(condition, mutex, libc::CLOCK_MONOTONIC, &raw const *until)
            }
        }
    });
    edge::takes_over(me, Key(condition as usize));
    // SAFETY: by the caller's promise.
    note_locked(me, unsafe { Mutex::at(mutex) }, 0);
    signal::cancellation_point(me);
    result
}

unsafe fn wait_in(
    me: &mut Token,
    condition: Condition,
    mutex: *mut pthread_mutex_t,
    deadline: Option<Moment>,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        match posix::Condition::is_beyond(condition) {
            true => wait_outside(me, condition.0, mutex, deadline),
            false => wait_on(me, condition, Mutex::at(mutex), deadline),
        }
    }
}

interpose! {
    fn pthread_cond_wait(condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> i32 = c"GLIBC_2.3.2", before outside::waits(), |me| {
        wait_in(me, Condition::at(condition), mutex, None)
    }

    fn pthread_cond_timedwait(
        condition: *mut pthread_cond_t,
        mutex: *mut pthread_mutex_t,
        until: *const timespec,
    ) -> i32 = c"GLIBC_2.3.2", before outside::waits(), |me| {
        if !has_nanoseconds(&*until) {
            return libc::EINVAL;
        }
        let condition = Condition::at(condition);
        let deadline = moment_of(me, condition.clock(), &*until);
        wait_in(me, condition, mutex, Some(deadline))
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
        let deadline = moment_of(me, clock, &*until);
        wait_in(me, Condition::at(condition), mutex, Some(deadline))
    }

    fn pthread_cond_signal(condition: *mut pthread_cond_t) -> i32 = c"GLIBC_2.3.2", outside outside::did(Key(condition as usize), Act::Woken(1)), |me| {
        wake(me, Condition::at(condition), false)
    }

    fn pthread_cond_broadcast(condition: *mut pthread_cond_t) -> i32 = c"GLIBC_2.3.2", outside outside::did(Key(condition as usize), Act::Woken(u32::MAX)), |me| {
        wake(me, Condition::at(condition), true)
    }
}
