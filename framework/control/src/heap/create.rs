//! `pthread_create` where there is no strict mode; where there is, its own hands the tag on.

use super::next;
use super::tag::{self, Routine};
use std::ffi::{c_int, c_void};
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Relaxed;

/// Starts the thread with the tag of its creator.
#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    routine: Routine,
    argument: *mut c_void,
) -> c_int {
    type Create = unsafe extern "C" fn(
        *mut libc::pthread_t,
        *const libc::pthread_attr_t,
        Routine,
        *mut c_void,
    ) -> c_int;
    static NEXT: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
    let mut create = NEXT.load(Relaxed);
    if create.is_null() {
        match next::look_up(c"pthread_create") {
            Some(function) => create = function,
            None => return libc::EAGAIN,
        }
        NEXT.store(create, Relaxed);
    }
    let start = tag::carry(routine, argument);
    // SAFETY: the next `pthread_create` has this type; its demands are met by our caller and by `carry`.
    let status =
        unsafe { std::mem::transmute::<*mut c_void, Create>(create)(thread, attributes, start.0, start.1) };
    if status != 0 {
        // SAFETY: no thread was started.
        unsafe { tag::discard(start) };
    }
    status
}
