//! `malloc` and its family, the constructor, and the one function the host calls.
//!
//! Nothing but fast paths. Not part of unit tests: these definitions would replace the test's allocator.

use super::accounting;
use super::next;
use super::tag;
use super::thread;
use super::wiped::WIPED;
use std::ffi::{c_char, c_int, c_void};

type Constructor = extern "C" fn(c_int, *const *const c_char, *const *const c_char);

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: Constructor = accounting::start;

/// Whether an allocation holds no sample point and nothing more need be done about it.
#[inline(always)]
fn passes(size: usize) -> bool {
    // SAFETY: stays on this thread.
    unsafe { thread::current() }.spend(size)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    // SAFETY: the caller's; this is what it called.
    let next = move || unsafe { next::malloc(size) };
    if passes(size) { next() } else { accounting::allocate(size, next) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    // SAFETY: the caller's.
    let next = move || unsafe { next::calloc(count, size) };
    match count.checked_mul(size) {
        Some(bytes) if !passes(bytes) => accounting::allocate(bytes, next),
        _ => next(),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn free(pointer: *mut c_void) {
    if WIPED.may_hold(pointer.addr()) {
        accounting::forget(pointer);
    }
    // SAFETY: the caller's.
    unsafe { next::free(pointer) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn realloc(pointer: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the caller's.
    let next = move || unsafe { next::realloc(pointer, size) };
    if !WIPED.may_hold(pointer.addr()) && passes(size) {
        next()
    } else {
        accounting::reallocate(pointer, size, next)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn reallocarray(pointer: *mut c_void, count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: the caller's.
        Some(bytes) => unsafe { realloc(pointer, bytes) },
        None => {
            // SAFETY: the error number of this thread.
            unsafe { *libc::__errno_location() = libc::ENOMEM };
            std::ptr::null_mut()
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memalign(alignment: usize, size: usize) -> *mut c_void {
    // SAFETY: the caller's.
    let next = move || unsafe { next::memalign(alignment, size) };
    if passes(size) { next() } else { accounting::allocate(size, next) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void {
    // SAFETY: the caller's.
    let next = move || unsafe { next::aligned_alloc(alignment, size) };
    if passes(size) { next() } else { accounting::allocate(size, next) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn valloc(size: usize) -> *mut c_void {
    // SAFETY: the caller's.
    let next = move || unsafe { next::valloc(size) };
    if passes(size) { next() } else { accounting::allocate(size, next) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvalloc(size: usize) -> *mut c_void {
    // SAFETY: the caller's.
    let next = move || unsafe { next::pvalloc(size) };
    if passes(size) { next() } else { accounting::allocate(size, next) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn posix_memalign(result: *mut *mut c_void, alignment: usize, size: usize) -> c_int {
    // SAFETY: the caller's.
    let next = move || unsafe { next::posix_memalign(result, alignment, size) };
    if passes(size) {
        return next();
    }
    let mut status = 0;
    accounting::allocate(size, || {
        status = next();
        // SAFETY: on success the pointer has been written.
        if status == 0 { unsafe { *result } } else { std::ptr::null_mut() }
    });
    status
}

/// Sets whose memory the calling thread allocates from now on, and returns whose it was. The host finds
/// this function with `dlsym`; zero is nobody.
#[unsafe(no_mangle)]
extern "C" fn waylay_heap_tag(tag: u32) -> u32 {
    tag::exchange(tag)
}

/// Sets what the host does first on every thread that a test starts. Found with `dlsym`, too.
#[unsafe(no_mangle)]
extern "C" fn waylay_thread_hook(hook: tag::Hook) {
    tag::set_hook(hook);
}
