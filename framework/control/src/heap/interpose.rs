//! `malloc` and its family, the constructor, and the one function the host calls.
//!
//! Nothing but fast paths. Not part of unit tests: these definitions would replace the test's allocator.

use super::accounting;
use super::next;
#[cfg(target_arch = "x86_64")]
use super::strict;
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

/// Defines exported functions that go on in one of two: the plain one, or under control one that gets an argument more,
/// the address to return to, which says whose code made the call. Outside strict mode that is a comparison and a jump.
macro_rules! in_two_ways {
    ($($name:ident($($argument:ident: $kind:ty),+) $(-> $result:ty)?, $register:literal => $plain:ident, $controlled:ident;)+) => {$(
        #[cfg(target_arch = "x86_64")]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: $kind),+) $(-> $result)? {
            core::arch::naked_asm!(
                "cmp byte ptr [rip + {controlled}], 0",
                "jne 2f",
                "jmp {plain}",
                "2:",
                concat!("mov ", $register, ", [rsp]"),
                "jmp {under_control}",
                controlled = sym strict::CONTROLLED,
                plain = sym $plain,
                under_control = sym under_control::$controlled,
            )
        }

        #[cfg(not(target_arch = "x86_64"))]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: $kind),+) $(-> $result)? {
            // SAFETY: the caller's.
            unsafe { $plain($($argument),+) }
        }
    )+};
}

in_two_ways! {
    malloc(size: usize) -> *mut c_void, "rsi" => plain_malloc, malloc;
    calloc(count: usize, size: usize) -> *mut c_void, "rdx" => plain_calloc, calloc;
    realloc(pointer: *mut c_void, size: usize) -> *mut c_void, "rdx" => plain_realloc, realloc;
    reallocarray(pointer: *mut c_void, count: usize, size: usize) -> *mut c_void, "rcx"
        => plain_reallocarray, reallocarray;
    free(pointer: *mut c_void), "rsi" => plain_free, free;
}

unsafe extern "C" fn plain_malloc(size: usize) -> *mut c_void {
    // SAFETY: the caller's; this is what it called.
    unsafe { if passes(size) { next::malloc(size) } else { malloc_sampled(size) } }
}

/// Apart, so that the usual way through `malloc` needs no frame.
#[cold]
#[inline(never)]
unsafe extern "C" fn malloc_sampled(size: usize) -> *mut c_void {
    // SAFETY: the caller's.
    accounting::allocate(size, move || unsafe { next::malloc(size) })
}

unsafe extern "C" fn plain_calloc(count: usize, size: usize) -> *mut c_void {
    // SAFETY: the caller's.
    let next = move || unsafe { next::calloc(count, size) };
    match count.checked_mul(size) {
        Some(bytes) if !passes(bytes) => accounting::allocate(bytes, next),
        _ => next(),
    }
}

unsafe extern "C" fn plain_free(pointer: *mut c_void) {
    // SAFETY: the caller's.
    unsafe { if WIPED.may_hold(pointer.addr()) { free_sampled(pointer) } else { next::free(pointer) } }
}

/// Apart, as [`malloc_sampled`].
#[cold]
#[inline(never)]
unsafe extern "C" fn free_sampled(pointer: *mut c_void) {
    accounting::forget(pointer);
    // SAFETY: the caller's.
    unsafe { next::free(pointer) }
}

unsafe extern "C" fn plain_realloc(pointer: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the caller's.
    account_for_realloc(pointer, size, move || unsafe { next::realloc(pointer, size) })
}

unsafe extern "C" fn plain_reallocarray(pointer: *mut c_void, count: usize, size: usize) -> *mut c_void {
    match bytes_of(count, size) {
        // SAFETY: the caller's.
        Some(bytes) => unsafe { plain_realloc(pointer, bytes) },
        None => std::ptr::null_mut(),
    }
}

#[inline(always)]
fn account_for_realloc(pointer: *mut c_void, size: usize, next: impl FnOnce() -> *mut c_void) -> *mut c_void {
    if !WIPED.may_hold(pointer.addr()) && passes(size) {
        next()
    } else {
        accounting::reallocate(pointer, size, next)
    }
}

/// The length of an array; an error number says that there is no such length.
fn bytes_of(count: usize, size: usize) -> Option<usize> {
    let bytes = count.checked_mul(size);
    if bytes.is_none() {
        // SAFETY: the error number of this thread.
        unsafe { *libc::__errno_location() = libc::ENOMEM };
    }
    bytes
}

/// The same in strict mode, where these calls are steps of code at `caller`.
#[cfg(target_arch = "x86_64")]
mod under_control {
    use super::*;

    pub(super) unsafe extern "C" fn malloc(size: usize, caller: usize) -> *mut c_void {
        strict::before_allocation(caller);
        // SAFETY: the caller's.
        strict::allocated(unsafe { plain_malloc(size) }, size, caller)
    }

    pub(super) unsafe extern "C" fn calloc(count: usize, size: usize, caller: usize) -> *mut c_void {
        strict::before_allocation(caller);
        // SAFETY: the caller's.
        strict::allocated(unsafe { plain_calloc(count, size) }, count.saturating_mul(size), caller)
    }

    pub(super) unsafe extern "C" fn free(pointer: *mut c_void, caller: usize) {
        if WIPED.may_hold(pointer.addr()) {
            accounting::forget(pointer);
        }
        // SAFETY: the caller's.
        unsafe { strict::free(pointer, caller) }
    }

    pub(super) unsafe extern "C" fn realloc(pointer: *mut c_void, size: usize, caller: usize) -> *mut c_void {
        let old = strict::length(pointer);
        strict::before_reallocation(pointer, old, caller);
        // SAFETY: the caller's.
        let block = account_for_realloc(pointer, size, move || unsafe { strict::realloc(pointer, size) });
        strict::reallocated((pointer, old), block, size, caller)
    }

    pub(super) unsafe extern "C" fn reallocarray(
        pointer: *mut c_void,
        count: usize,
        size: usize,
        caller: usize,
    ) -> *mut c_void {
        match bytes_of(count, size) {
            // SAFETY: the caller's.
            Some(bytes) => unsafe { realloc(pointer, bytes, caller) },
            None => std::ptr::null_mut(),
        }
    }
}

/// Blocks with a wish for their alignment are no steps, and new memory all the same.
#[inline(always)]
fn aligned(block: *mut c_void, size: usize) -> *mut c_void {
    #[cfg(target_arch = "x86_64")]
    strict::allocated(block, size, 0);
    let _ = size;
    block
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memalign(alignment: usize, size: usize) -> *mut c_void {
    // SAFETY: the caller's.
    let next = move || unsafe { next::memalign(alignment, size) };
    aligned(if passes(size) { next() } else { accounting::allocate(size, next) }, size)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void {
    // SAFETY: the caller's.
    let next = move || unsafe { next::aligned_alloc(alignment, size) };
    aligned(if passes(size) { next() } else { accounting::allocate(size, next) }, size)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn valloc(size: usize) -> *mut c_void {
    // SAFETY: the caller's.
    let next = move || unsafe { next::valloc(size) };
    aligned(if passes(size) { next() } else { accounting::allocate(size, next) }, size)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvalloc(size: usize) -> *mut c_void {
    // SAFETY: the caller's.
    let next = move || unsafe { next::pvalloc(size) };
    aligned(if passes(size) { next() } else { accounting::allocate(size, next) }, size)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn posix_memalign(result: *mut *mut c_void, alignment: usize, size: usize) -> c_int {
    // SAFETY: the caller's.
    let next = move || unsafe { next::posix_memalign(result, alignment, size) };
    let mut status = 0;
    let mut block = || {
        status = next();
        // SAFETY: on success the pointer has been written.
        if status == 0 { unsafe { *result } } else { std::ptr::null_mut() }
    };
    aligned(if passes(size) { block() } else { accounting::allocate(size, block) }, size);
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
