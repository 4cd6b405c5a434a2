//! Condition variables. The real one is never waited on by logical threads.

use core::ffi::c_int;

use waylay_runtime::posix::condition::{self as posix, Then, wait_on, wake};
use waylay_scheduler::Key;

use super::mutex::{Locked, Mutex};
use super::{Timespec, after, moment_of};
use crate::interpose::interpose_foreign;
use crate::runtime::outside::{self, Act};
use crate::runtime::{Logical, Token};

type Condition = isize;

/// A condition variable of the program, by its address.
#[derive(Clone, Copy)]
struct Waited(*mut Condition);

impl Waited {
    /// # Safety
    /// The condition variable exists for as long as this value is used.
    unsafe fn at(condition: *mut Condition) -> Waited {
        Waited(condition)
    }
}

impl posix::Condition for Waited {
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

    fn interrupted(self, _: &mut Token) -> Then {
        Then::Returns
    }
}

/// A thread outside the schedule is about to wait, and frees the mutex.
fn wait_outside(mutex: *mut Mutex) {
    outside::waits();
    outside::did(Key(mutex as usize), Act::Freed);
}

interpose_foreign! {
    fn pthread_cond_wait(condition: *mut Condition, mutex: *mut Mutex) -> c_int
        = { wait_outside(mutex); real::pthread_cond_wait(condition, mutex) }, |me| {
        wait_on(me, Waited::at(condition), Locked::at(mutex), None)
    }
    fn pthread_cond_timedwait(condition: *mut Condition, mutex: *mut Mutex, until: *const Timespec) -> c_int
        = { wait_outside(mutex); real::pthread_cond_timedwait(condition, mutex, until) }, |me| {
        let deadline = moment_of(me, &*until);
        wait_on(me, Waited::at(condition), Locked::at(mutex), Some(deadline))
    }
    fn pthread_cond_timedwait_relative_np(condition: *mut Condition, mutex: *mut Mutex, span: *const Timespec) -> c_int
        = { wait_outside(mutex); real::pthread_cond_timedwait_relative_np(condition, mutex, span) }, |me| {
        let deadline = after(me, &*span);
        wait_on(me, Waited::at(condition), Locked::at(mutex), Some(deadline))
    }
    fn pthread_cond_signal(condition: *mut Condition) -> c_int = {
        outside::did(Key(condition as usize), Act::Woken(1));
        real::pthread_cond_signal(condition)
    }, |me| {
        wake(me, Waited::at(condition), false)
    }
    fn pthread_cond_broadcast(condition: *mut Condition) -> c_int = {
        outside::did(Key(condition as usize), Act::Woken(u32::MAX));
        real::pthread_cond_broadcast(condition)
    }, |me| {
        wake(me, Waited::at(condition), true)
    }
}
