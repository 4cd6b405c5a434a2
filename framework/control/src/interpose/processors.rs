//! Which processors a thread may use. Baton mode binds every thread to one; the program must not notice, or it would
//! start fewer threads.

use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use libc::{EINVAL, c_int, pid_t, pthread_t, size_t};

use super::{fail, identity, interpose};
use crate::sys;

/// The processors that the process could use before it was bound to one.
static BEFORE: [AtomicU64; 16] = [const { AtomicU64::new(0) }; 16];
static BOUND: AtomicBool = AtomicBool::new(false);

/// Binds the calling kernel thread, and those it will create, to the processor it is on, unless it is bound already.
pub(crate) fn bind() {
    if BOUND.swap(true, Ordering::Relaxed) {
        return;
    }
    let mut mask = [0u64; 16];
    let args = [0, size_of_val(&mask), mask.as_mut_ptr() as usize, 0, 0, 0];
    // SAFETY: the kernel writes at most the length passed.
    unsafe { sys::call(libc::SYS_sched_getaffinity, args) };
    for (word, before) in mask.iter().zip(&BEFORE) {
        before.store(*word, Ordering::Relaxed);
    }
    sys::pin_to_current_processor();
}

/// Undoes [`bind`].
pub(crate) fn release() {
    if BOUND.swap(false, Ordering::Relaxed) {
        let mask = before();
        let args = [0, size_of_val(&mask), mask.as_ptr() as usize, 0, 0, 0];
        // SAFETY: the mask is readable for the length passed.
        unsafe { sys::call(libc::SYS_sched_setaffinity, args) };
    }
}

fn before() -> [u64; 16] {
    core::array::from_fn(|word| BEFORE[word].load(Ordering::Relaxed))
}

/// Writes the mask that the program had before the run; returns the bytes written or a negative error number.
///
/// # Safety
/// The caller holds the token; `to` is writable for `len` bytes.
pub(super) unsafe fn report(len: usize, to: *mut u8) -> isize {
    // SAFETY: by the caller's promise.
    unsafe {
        let mask = before();
        if len < 8 {
            return -(EINVAL as isize);
        }
        let taken = len.min(size_of_val(&mask));
        to.copy_from_nonoverlapping(mask.as_ptr().cast(), taken);
        taken as isize
    }
}

interpose! {
    fn sched_getaffinity(process: pid_t, len: size_t, to: *mut c_void) -> c_int, |me| {
        if !identity::is_me(me, process as usize) {
            return real::sched_getaffinity(process, len, to);
        }
        to.cast::<u8>().write_bytes(0, len);
        match report(len, to.cast()) {
            error if error < 0 => fail(-error as i32),
            _ => 0,
        }
    }

    // Placement is the scheduler's; the wish is accepted and has no effect.
    fn sched_setaffinity(_process: pid_t, _len: size_t, _from: *const c_void) -> c_int, |_me| { 0 }

    fn pthread_setaffinity_np(_handle: pthread_t, _len: size_t, _from: *const c_void) -> c_int, |_me| { 0 }

    fn pthread_getaffinity_np(_handle: pthread_t, len: size_t, to: *mut c_void) -> c_int, |_me| {
        to.cast::<u8>().write_bytes(0, len);
        match report(len, to.cast()) {
            error if error < 0 => -error as i32,
            _ => 0,
        }
    }

    // Always the first: which processor a fiber is on means nothing to the program.
    fn sched_getcpu() -> c_int, |_me| { 0 }
}
