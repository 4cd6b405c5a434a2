//! Whose memory a thread allocates, and how a new thread learns it from the one that made it.

use super::next;
use super::thread;
use std::ffi::c_void;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Release};

/// What `pthread_create` runs. `pthread_exit` unwinds through it.
pub(crate) type Routine = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;

/// What the host wants to do first on every thread that a test starts; null when nothing.
static HOOK: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// A function that the host wants to run on new threads.
pub(crate) type Hook = extern "C" fn();

/// From now on runs `hook` first on every thread that is started by a thread with a tag.
pub(crate) fn set_hook(hook: Hook) {
    HOOK.store(hook as *mut c_void, Release);
}

fn run_hook() {
    let hook = HOOK.load(Acquire);
    if !hook.is_null() {
        // SAFETY: only `set_hook` stores here, and only functions of this type.
        unsafe { std::mem::transmute::<*mut c_void, Hook>(hook)() };
    }
}

/// Sets the tag of the calling thread and returns the one before.
pub(crate) fn exchange(tag: u32) -> u32 {
    // SAFETY: stays on this thread.
    unsafe { thread::current() }.tag.replace(tag)
}

/// A routine and argument to start a thread with instead of the given ones, such that it begins with the
/// tag of the calling thread. For an interposed `pthread_create`; if the thread cannot be created, pass
/// the result to [`discard`].
pub(crate) fn carry(routine: Routine, argument: *mut c_void) -> (Routine, *mut c_void) {
    // SAFETY: stays on this thread.
    let tag = unsafe { thread::current() }.tag.get();
    if tag == 0 {
        return (routine, argument);
    }
    // SAFETY: asks the real allocator for room, so the start of a thread is nobody's sample.
    let start = unsafe { next::malloc(size_of::<Start>()) }.cast::<Start>();
    if start.is_null() {
        return (routine, argument);
    }
    // SAFETY: fresh memory of the right size; the allocator aligns to 16 bytes.
    unsafe { start.write(Start { routine, argument, tag }) };
    (begin, start.cast())
}

/// Takes back a [`carry`] whose thread never came to be.
///
/// # Safety
///
/// The pair is a result of [`carry`] that no thread was started with.
pub(crate) unsafe fn discard((routine, argument): (Routine, *mut c_void)) {
    if std::ptr::fn_addr_eq(routine, begin as Routine) {
        // SAFETY: allocated by `carry`, and the caller vouches that nobody else frees it.
        unsafe { next::free(argument) };
    }
}

struct Start {
    routine: Routine,
    argument: *mut c_void,
    tag: u32,
}

unsafe extern "C-unwind" fn begin(start: *mut c_void) -> *mut c_void {
    // SAFETY: written by `carry` for this thread alone, which frees it here.
    let Start { routine, argument, tag } = unsafe {
        let taken = start.cast::<Start>().read();
        next::free(start);
        taken
    };
    exchange(tag);
    run_hook();
    // SAFETY: what the creator of the thread asked for.
    unsafe { routine(argument) }
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C-unwind" fn report_tag(argument: *mut c_void) -> *mut c_void {
        std::ptr::without_provenance_mut(argument.addr() + exchange(0) as usize)
    }

    #[test]
    fn a_tag_is_carried() {
        let before = exchange(40);
        let (routine, argument) = carry(report_tag, std::ptr::without_provenance_mut(2));
        exchange(before);
        // SAFETY: run once, as a new thread would.
        assert_eq!(unsafe { routine(argument) }.addr(), 42);
    }

    #[test]
    fn without_a_tag_nothing_is_carried() {
        let before = exchange(0);
        let started = carry(report_tag, std::ptr::null_mut());
        assert!(std::ptr::fn_addr_eq(started.0, report_tag as Routine));
        exchange(9);
        // SAFETY: neither pair starts a thread.
        unsafe {
            discard(started);
            discard(carry(report_tag, std::ptr::null_mut()));
        }
        exchange(before);
    }
}
