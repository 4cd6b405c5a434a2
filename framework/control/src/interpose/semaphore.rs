//! Semaphores: `sem_wait` and its like, on the real semaphore through `sem_trywait`.

use core::sync::atomic::{AtomicU32, Ordering};

use libc::{EINTR, EINVAL, ETIMEDOUT, clockid_t, sem_t, timespec};
use waylay_runtime::posix::semaphore::{self as posix, add, try_wait, wait_for};

use super::clock::{has_deadlines, has_nanoseconds, moment_of};
use super::{fail, interpose, signal};
use crate::runtime::outside::{self, Act};
use crate::runtime::{Logical, Token};
use crate::sched::Key;

/// A semaphore, by its address.
#[derive(Clone, Copy)]
struct Semaphore(*mut sem_t);

impl Semaphore {
    /// # Safety
    /// The semaphore exists for as long as this value is used.
    unsafe fn at(semaphore: *mut sem_t) -> Semaphore {
        Semaphore(semaphore)
    }
}

impl posix::Semaphore for Semaphore {
    type Thread = Logical;
    const TIMED_OUT: i32 = ETIMEDOUT;
    const INTERRUPTED: i32 = EINTR;

    fn key(self) -> Key {
        Key(self.0 as usize)
    }

    /// The value is the low half of glibc's first word on x86-64.
    fn is_free(self) -> bool {
        // SAFETY: inside the semaphore, which exists; other kernel threads may write it.
        unsafe { (*self.0.cast::<AtomicU32>()).load(Ordering::Relaxed) > 0 }
    }

    fn attempt(self) -> i32 {
        // SAFETY: the semaphore exists.
        unsafe { real::sem_trywait(self.0) }
    }

    fn fail(error: i32) -> i32 {
        fail(error)
    }

    fn begin(self, me: &mut Token) -> Option<i32> {
        signal::cancellation_point(me);
        None
    }

    /// The kernel begins a wait again that has no deadline.
    fn fails(self, me: &mut Token, for_ever: bool) -> bool {
        signal::fails(me, for_ever)
    }

    /// Glibc's third word on x86-64 says whether it was made for several processes.
    fn is_beyond(self) -> bool {
        // SAFETY: inside the semaphore, which exists.
        let shared = unsafe { self.0.cast::<u32>().add(2).read_volatile() } != 0;
        shared && outside::may_share()
    }
}

interpose! {
    fn sem_wait(semaphore: *mut sem_t) -> i32, |me| { wait_for(me, Semaphore::at(semaphore), None) }

    fn sem_trywait(semaphore: *mut sem_t) -> i32, |me| { try_wait(me, Semaphore::at(semaphore)) }

    fn sem_timedwait(semaphore: *mut sem_t, until: *const timespec) -> i32, |me| {
        if !has_nanoseconds(&*until) {
            return fail(EINVAL);
        }
        let deadline = moment_of(me, libc::CLOCK_REALTIME, &*until);
        wait_for(me, Semaphore::at(semaphore), Some(deadline))
    }

    fn sem_clockwait(semaphore: *mut sem_t, clock: clockid_t, until: *const timespec) -> i32, |me| {
        if !has_nanoseconds(&*until) || !has_deadlines(clock) {
            return fail(EINVAL);
        }
        let deadline = moment_of(me, clock, &*until);
        wait_for(me, Semaphore::at(semaphore), Some(deadline))
    }

    fn sem_post(semaphore: *mut sem_t) -> i32, outside outside::did(Key(semaphore as usize), Act::Freed), |me| {
        add(me, Semaphore::at(semaphore), || real::sem_post(semaphore))
    }
}
