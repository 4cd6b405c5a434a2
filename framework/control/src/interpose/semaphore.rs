//! Semaphores: `sem_wait` and its like, on the real semaphore through `sem_trywait`.

use core::sync::atomic::{AtomicU32, Ordering};

use libc::{EINTR, EINVAL, ETIMEDOUT, clockid_t, sem_t, timespec};
use waylay_schedule::EventKind;

use super::clock::{has_deadlines, has_nanoseconds, moment_of};
use super::{fail, interpose, signal};
use crate::instrument::edge;
use crate::runtime::outside::{self, Act};
use crate::runtime::{Waited, acquire, acquire_from_outside, event_at, freed, step, taken, Token};
use crate::sched::{Key, Moment, Shares};

/// The value is the low half of glibc's first word on x86-64.
unsafe fn value(semaphore: *const sem_t) -> u32 {
    // SAFETY: inside the semaphore, which the caller vouches for.
    unsafe { (*semaphore.cast::<AtomicU32>()).load(Ordering::Relaxed) }
}

/// Whether processes that are not under control may post it. Glibc's third word on x86-64 says whether it was made for several.
unsafe fn is_outside(semaphore: *const sem_t) -> bool {
    // SAFETY: inside the semaphore, which the caller vouches for.
    let shared = unsafe { semaphore.cast::<u32>().add(2).read_volatile() } != 0;
    shared && outside::has_started_processes()
}

unsafe fn note_taken(me: &mut Token, semaphore: *const sem_t) {
    // SAFETY: by the caller's promise.
    unsafe {
        edge::takes_over(me, Key(semaphore as usize));
        if value(semaphore) == 0 {
            taken(me, Key(semaphore as usize), Shares::ALL);
        }
    }
}

unsafe fn wait_for(me: &mut Token, semaphore: *mut sem_t, deadline: Option<Moment>) -> i32 {
    let key = Key(semaphore as usize);
    let event = event_at(EventKind::SemWait, key);
    // SAFETY: by the caller's promise.
    unsafe {
        signal::cancellation_point(me);
        loop {
            let free = |_: &mut Token| value(semaphore) > 0;
            let attempt = |me: &mut Token| (free(me) && real::sem_trywait(semaphore) == 0).then_some(());
            let got = match is_outside(semaphore) {
                true => acquire_from_outside(me, event, deadline, attempt),
                false => acquire(me, event, key, Shares::ALL, deadline, free, attempt),
            };
            match got {
                Ok(()) => {
                    note_taken(me, semaphore);
                    return 0;
                }
                Err(Waited::TimedOut) => return fail(ETIMEDOUT),
                // The kernel begins a wait again that has no deadline.
                Err(Waited::Interrupted | Waited::Done) => {
                    if signal::fails(me, deadline.is_none()) {
                        return fail(EINTR);
                    }
                }
            }
        }
    }
}

interpose! {
    fn sem_wait(semaphore: *mut sem_t) -> i32, |me| { wait_for(me, semaphore, None) }

    fn sem_trywait(semaphore: *mut sem_t) -> i32, |me| {
        step(me, event_at(EventKind::SemTryWait, Key(semaphore as usize)));
        let result = real::sem_trywait(semaphore);
        if result == 0 {
            note_taken(me, semaphore);
        }
        result
    }

    fn sem_timedwait(semaphore: *mut sem_t, until: *const timespec) -> i32, |me| {
        if !has_nanoseconds(&*until) {
            return fail(EINVAL);
        }
        let deadline = moment_of(me, libc::CLOCK_REALTIME, until);
        wait_for(me, semaphore, Some(deadline))
    }

    fn sem_clockwait(semaphore: *mut sem_t, clock: clockid_t, until: *const timespec) -> i32, |me| {
        if !has_nanoseconds(&*until) || !has_deadlines(clock) {
            return fail(EINVAL);
        }
        let deadline = moment_of(me, clock, until);
        wait_for(me, semaphore, Some(deadline))
    }

    fn sem_post(semaphore: *mut sem_t) -> i32, outside outside::did(Key(semaphore as usize), Act::Freed), |me| {
        let key = Key(semaphore as usize);
        let result = real::sem_post(semaphore);
        edge::hands_over(me, key);
        freed(me, key, Shares::ALL);
        step(me, event_at(EventKind::SemPost, key));
        result
    }
}
