//! Semaphores, on the real ones through `sem_trywait`.

use core::ffi::{c_int, c_void};

use waylay_runtime::posix::semaphore::{self as posix, add, try_wait, wait_for};
use waylay_scheduler::Key;

use super::{EAGAIN, EINTR, EINVAL, ETIMEDOUT, Timespec, fail, moment_of};
use crate::interpose::{Foreign, interpose_foreign};
use crate::runtime::outside::{self, Act};
use crate::runtime::{Logical, Token};

type Semaphore = *mut c_void;

/// A semaphore of the program, by its address.
#[derive(Clone, Copy)]
struct Counted(*mut Semaphore);

impl Counted {
    /// # Safety
    /// The semaphore exists for as long as this value is used.
    unsafe fn at(semaphore: *mut Semaphore) -> Counted {
        Counted(semaphore)
    }

    /// How many it has; none when it is no semaphore.
    fn value(self) -> Option<c_int> {
        static VALUE: Foreign = Foreign::new("sem_getvalue\0");
        let mut value = 0;
        // SAFETY: the semaphore exists; the function of this name has this type.
        let result = unsafe {
            let ask: unsafe extern "C" fn(*mut Semaphore, *mut c_int) -> c_int =
                core::mem::transmute(VALUE.address());
            ask(self.0, &mut value)
        };
        (result == 0).then_some(value)
    }
}

impl posix::Semaphore for Counted {
    type Thread = Logical;
    const TIMED_OUT: c_int = ETIMEDOUT;
    const INTERRUPTED: c_int = EINTR;

    fn key(self) -> Key {
        Key(self.0 as usize)
    }

    fn is_free(self) -> bool {
        self.value().is_some_and(|value| value > 0)
    }

    fn attempt(self) -> c_int {
        if self.value().is_some_and(|value| value <= 0) {
            return fail(EAGAIN);
        }
        // SAFETY: the semaphore exists.
        unsafe { real::sem_trywait(self.0) }
    }

    fn fail(error: c_int) -> c_int {
        fail(error)
    }

    fn begin(self, _: &mut Token) -> Option<c_int> {
        self.value().is_none().then_some(EINVAL)
    }
}

fn add_outside(semaphore: *mut Semaphore, post: impl FnOnce() -> c_int) -> c_int {
    let result = post();
    outside::did(Key(semaphore as usize), Act::Freed);
    result
}

interpose_foreign! {
    fn sem_wait(semaphore: *mut Semaphore) -> c_int = real::sem_wait(semaphore), |me| {
        wait_for(me, Counted::at(semaphore), None)
    }
    fn sem_timedwait(semaphore: *mut Semaphore, until: *const Timespec) -> c_int
        = real::sem_timedwait(semaphore, until), |me| {
        if !(*until).is_valid() {
            return fail(EINVAL);
        }
        let deadline = moment_of(me, &*until);
        wait_for(me, Counted::at(semaphore), Some(deadline))
    }
    fn sem_trywait(semaphore: *mut Semaphore) -> c_int = real::sem_trywait(semaphore), |me| {
        try_wait(me, Counted::at(semaphore))
    }
    fn sem_post(semaphore: *mut Semaphore) -> c_int = add_outside(semaphore, || real::sem_post(semaphore)), |me| {
        add(me, Counted::at(semaphore), || real::sem_post(semaphore))
    }
    fn sem_post_multiple(semaphore: *mut Semaphore, count: c_int) -> c_int
        = add_outside(semaphore, || real::sem_post_multiple(semaphore, count)), |me| {
        add(me, Counted::at(semaphore), || real::sem_post_multiple(semaphore, count))
    }
}
