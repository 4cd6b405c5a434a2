//! Semaphores, on the real ones through `sem_trywait`.

use core::ffi::{c_int, c_void};

use waylay_schedule::EventKind;
use waylay_scheduler::{Key, Moment, Shares};

use super::{EAGAIN, EINVAL, ETIMEDOUT, Timespec, fail, moment_of};
use crate::interpose::{Foreign, interpose_foreign};
use crate::runtime::outside::{self, Act};
use crate::runtime::{Token, Waited, acquire, event_at, freed, step, taken};
use crate::watch::edge;

type Semaphore = *mut c_void;

/// How many it has; none when it is no semaphore.
unsafe fn value(semaphore: *mut Semaphore) -> Option<c_int> {
    static VALUE: Foreign = Foreign::new("sem_getvalue\0");
    let mut value = 0;
    // SAFETY: by the caller's promise; the function of this name has this type.
    let result = unsafe {
        let ask: unsafe extern "C" fn(*mut Semaphore, *mut c_int) -> c_int =
            core::mem::transmute(VALUE.address());
        ask(semaphore, &mut value)
    };
    (result == 0).then_some(value)
}

unsafe fn note_taken(me: &mut Token, semaphore: *mut Semaphore) {
    // SAFETY: by the caller's promise.
    unsafe {
        edge::takes_over(me, Key(semaphore as usize));
        if value(semaphore).is_none_or(|value| value <= 0) {
            taken(me, Key(semaphore as usize), Shares::ALL);
        }
    }
}

unsafe fn wait_for(me: &mut Token, semaphore: *mut Semaphore, deadline: Option<Moment>) -> c_int {
    let key = Key(semaphore as usize);
    let event = event_at(EventKind::SemWait, key);
    // SAFETY: by the caller's promise.
    unsafe {
        if value(semaphore).is_none() {
            return fail(EINVAL);
        }
        loop {
            let free = |_: &mut Token| value(semaphore).is_some_and(|value| value > 0);
            let attempt = |me: &mut Token| (free(me) && real::sem_trywait(semaphore) == 0).then_some(());
            match acquire(me, event, key, Shares::ALL, deadline, free, attempt) {
                Ok(()) => {
                    note_taken(me, semaphore);
                    return 0;
                }
                Err(Waited::TimedOut) => return fail(ETIMEDOUT),
                Err(Waited::Interrupted | Waited::Done) => {}
            }
        }
    }
}

/// Adds to a semaphore, with `post`, and tells who waits.
unsafe fn add(me: &mut Token, semaphore: *mut Semaphore, post: impl FnOnce() -> c_int) -> c_int {
    let key = Key(semaphore as usize);
    let result = post();
    edge::hands_over(me, key);
    freed(me, key, Shares::ALL);
    step(me, event_at(EventKind::SemPost, key));
    result
}

fn add_outside(semaphore: *mut Semaphore, post: impl FnOnce() -> c_int) -> c_int {
    let result = post();
    outside::did(Key(semaphore as usize), Act::Freed);
    result
}

interpose_foreign! {
    fn sem_wait(semaphore: *mut Semaphore) -> c_int = real::sem_wait(semaphore), |me| {
        wait_for(me, semaphore, None)
    }
    fn sem_timedwait(semaphore: *mut Semaphore, until: *const Timespec) -> c_int
        = real::sem_timedwait(semaphore, until), |me| {
        if !(*until).is_valid() {
            return fail(EINVAL);
        }
        let deadline = moment_of(me, until);
        wait_for(me, semaphore, Some(deadline))
    }
    fn sem_trywait(semaphore: *mut Semaphore) -> c_int = real::sem_trywait(semaphore), |me| {
        step(me, event_at(EventKind::SemTryWait, Key(semaphore as usize)));
        if value(semaphore).is_some_and(|value| value <= 0) {
            return fail(EAGAIN);
        }
        let result = real::sem_trywait(semaphore);
        if result == 0 {
            note_taken(me, semaphore);
        }
        result
    }
    fn sem_post(semaphore: *mut Semaphore) -> c_int = add_outside(semaphore, || real::sem_post(semaphore)), |me| {
        add(me, semaphore, || real::sem_post(semaphore))
    }
    fn sem_post_multiple(semaphore: *mut Semaphore, count: c_int) -> c_int
        = add_outside(semaphore, || real::sem_post_multiple(semaphore, count)), |me| {
        add(me, semaphore, || real::sem_post_multiple(semaphore, count))
    }
}
