//! Static variables of C++ functions, which are initialised when they are first come by, and thread-local ones, which get
//! their place then.
//!
//! The runtime guards that with locks of its own, which are no steps. Of many runs in one process only the first initialises,
//! and a fresh process that follows the schedule of a later one does so, too: there the initialiser makes no steps either.

use core::ffi::{c_int, c_void};

use waylay_accesses::{Access, access};
use waylay_schedule::EventKind;

use super::interpose_foreign;
use crate::me::as_program;
use crate::runtime::Token;
use crate::watch::Windows;

/// Calls the runtime without steps; `initialises` says from the result whether the initialiser comes next.
fn guarded<R>(me: &mut Token, call: impl FnOnce() -> R, initialises: impl Fn(&R) -> bool) -> R {
    // SAFETY: who has the token lives.
    unsafe {
        (*me.thread()).unpreemptible += 1;
        let result = as_program(me, call);
        if !me.run().repeats || !initialises(&result) {
            (*me.thread()).unpreemptible -= 1;
        }
        result
    }
}

/// The initialiser is over, well or not.
fn over(me: &mut Token, call: impl FnOnce()) {
    // SAFETY: who has the token lives.
    unsafe {
        guarded(me, call, |()| false);
        if me.run().repeats {
            (*me.thread()).unpreemptible = (*me.thread()).unpreemptible.saturating_sub(1);
        }
    }
}

/// What the runtime does to the byte that the program looks at later, without a call, to see that all is done.
unsafe fn ordered(me: &mut Token, kind: EventKind, guard: *mut i64) {
    // SAFETY: by the caller's promise.
    unsafe {
        access::ordering::<Windows>(me.thread(), Access::reported(kind, guard as usize, 1, guard as usize))
    };
}

interpose_foreign! {
    fn __cxa_guard_acquire(guard: *mut i64) -> c_int = real::__cxa_guard_acquire(guard), |me| {
        let result = guarded(me, || real::__cxa_guard_acquire(guard), |&result| result != 0);
        ordered(me, EventKind::AtomicLoad, guard);
        result
    }
    fn __cxa_guard_release(guard: *mut i64) -> () = real::__cxa_guard_release(guard), |me| {
        ordered(me, EventKind::AtomicStore, guard);
        over(me, || real::__cxa_guard_release(guard))
    }
    fn __emutls_get_address(object: *mut c_void) -> *mut c_void = real::__emutls_get_address(object), |me| {
        guarded(me, || real::__emutls_get_address(object), |_| false)
    }
    fn __cxa_guard_abort(guard: *mut i64) -> () = real::__cxa_guard_abort(guard), |me| {
        over(me, || real::__cxa_guard_abort(guard))
    }
}
