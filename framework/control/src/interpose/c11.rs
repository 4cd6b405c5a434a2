//! C11 threads. libc implements them with internal calls that interposition does not see, so they are brought to
//! the pthread functions here; the objects are the same.

use core::ffi::c_void;

use libc::{
    EBUSY, ENOMEM, ETIMEDOUT, c_int, pthread_cond_t, pthread_mutex_t, pthread_once_t, pthread_t, timespec,
};

use super::clock::{is_length, moment_after};
use super::{interpose, sleep};
use crate::me::as_program;
use crate::runtime::Routine;

/// What a function of this family returns.
fn status(error: c_int) -> c_int {
    const SUCCESS: c_int = 0;
    const BUSY: c_int = 1;
    const ERROR: c_int = 2;
    const NO_MEMORY: c_int = 3;
    const TIMED_OUT: c_int = 4;
    match error {
        0 => SUCCESS,
        EBUSY => BUSY,
        ENOMEM => NO_MEMORY,
        ETIMEDOUT => TIMED_OUT,
        _ => ERROR,
    }
}

// Bound to our own interposed functions, since the library comes first in lookup order.
unsafe extern "C-unwind" {
    fn pthread_create(t: *mut pthread_t, a: *const c_void, f: Routine, x: *mut c_void) -> c_int;
    fn pthread_join(t: pthread_t, r: *mut *mut c_void) -> c_int;
    fn pthread_detach(t: pthread_t) -> c_int;
    fn pthread_exit(r: *mut c_void);
    fn pthread_mutex_lock(m: *mut pthread_mutex_t) -> c_int;
    fn pthread_mutex_trylock(m: *mut pthread_mutex_t) -> c_int;
    fn pthread_mutex_timedlock(m: *mut pthread_mutex_t, t: *const timespec) -> c_int;
    fn pthread_mutex_unlock(m: *mut pthread_mutex_t) -> c_int;
    fn pthread_cond_wait(c: *mut pthread_cond_t, m: *mut pthread_mutex_t) -> c_int;
    fn pthread_cond_timedwait(c: *mut pthread_cond_t, m: *mut pthread_mutex_t, t: *const timespec) -> c_int;
    fn pthread_cond_signal(c: *mut pthread_cond_t) -> c_int;
    fn pthread_cond_broadcast(c: *mut pthread_cond_t) -> c_int;
    fn pthread_once(o: *mut pthread_once_t, f: extern "C-unwind" fn()) -> c_int;
    fn sched_yield() -> c_int;
}

interpose! {
    // The routine returns an int, which comes back in the low half of the register that a pointer would use;
    // `thrd_join` only looks at that half.
    fn thrd_create(thread: *mut pthread_t, routine: Routine, argument: *mut c_void) -> c_int, |me| {
        status(as_program(me, || pthread_create(thread, core::ptr::null(), routine, argument)))
    }

    fn thrd_join(thread: pthread_t, result: *mut c_int) -> c_int, |me| {
        let mut value = core::ptr::null_mut();
        let error = as_program(me, || pthread_join(thread, &raw mut value));
        if error == 0 && !result.is_null() {
            *result = value as usize as c_int;
        }
        status(error)
    }

    fn thrd_detach(thread: pthread_t) -> c_int, |me| { status(as_program(me, || pthread_detach(thread))) }

    fn thrd_exit(result: c_int) -> (), |me| { as_program(me, || pthread_exit(result as usize as *mut c_void)) }

    fn thrd_yield() -> (), |me| {
        as_program(me, || sched_yield());
    }

    fn thrd_sleep(length: *const timespec, rest: *mut timespec) -> c_int, |me| {
        const INTERRUPTED: c_int = -1;
        const OTHER_ERROR: c_int = -2;
        if !is_length(&*length) {
            return OTHER_ERROR;
        }
        let deadline = moment_after(me, &*length);
        let Err(left) = sleep::sleep_to(me, deadline) else { return 0 };
        if !rest.is_null() {
            *rest = left;
        }
        INTERRUPTED
    }

    fn mtx_lock(mutex: *mut pthread_mutex_t) -> c_int, |me| { status(as_program(me, || pthread_mutex_lock(mutex))) }

    fn mtx_trylock(mutex: *mut pthread_mutex_t) -> c_int, |me| { status(as_program(me, || pthread_mutex_trylock(mutex))) }

    fn mtx_timedlock(mutex: *mut pthread_mutex_t, until: *const timespec) -> c_int, |me| {
        status(as_program(me, || pthread_mutex_timedlock(mutex, until)))
    }

    fn mtx_unlock(mutex: *mut pthread_mutex_t) -> c_int, |me| { status(as_program(me, || pthread_mutex_unlock(mutex))) }

    fn cnd_wait(condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> c_int, |me| {
        status(as_program(me, || pthread_cond_wait(condition, mutex)))
    }

    fn cnd_timedwait(
        condition: *mut pthread_cond_t,
        mutex: *mut pthread_mutex_t,
        until: *const timespec,
    ) -> c_int, |me| { status(as_program(me, || pthread_cond_timedwait(condition, mutex, until))) }

    fn cnd_signal(condition: *mut pthread_cond_t) -> c_int, |me| { status(as_program(me, || pthread_cond_signal(condition))) }

    fn cnd_broadcast(condition: *mut pthread_cond_t) -> c_int, |me| { status(as_program(me, || pthread_cond_broadcast(condition))) }

    fn call_once(control: *mut pthread_once_t, initialise: extern "C-unwind" fn()) -> (), |me| {
        as_program(me, || pthread_once(control, initialise));
    }
}
