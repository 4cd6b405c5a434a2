//! `malloc` and its family, the constructor, and the one function the host calls.
//!
//! Nothing but fast paths. Not part of unit tests: these definitions would replace the test's allocator.

use super::accounting;
use super::next;
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

/// Defines exported functions that go on in another one with one argument more: the address they return to, which
/// says whose code made the call.
macro_rules! with_caller {
    ($($name:ident($($argument:ident),+) $register:literal => $function:ident;)+) => {$(
        #[cfg(target_arch = "x86_64")]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: usize),+) -> *mut c_void {
            core::arch::naked_asm!(concat!("mov ", $register, ", [rsp]"), "jmp {function}", function = sym $function)
        }

        #[cfg(not(target_arch = "x86_64"))]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: usize),+) -> *mut c_void {
            // SAFETY: the caller's.
            unsafe { $function($($argument as _,)+ 0) }
        }
    )+};
}

with_caller! {
    malloc(size) "rsi" => malloc_for;
    calloc(count, size) "rdx" => calloc_for;
    realloc(pointer, size) "rdx" => realloc_for;
    reallocarray(pointer, count, size) "rcx" => reallocarray_for;
    free(pointer) "rsi" => free_for;
}

unsafe extern "C" fn malloc_for(size: usize, caller: usize) -> *mut c_void {
    strict::before_allocation(caller);
    // SAFETY: the caller's; this is what it called.
    let next = move || unsafe { next::malloc(size) };
    if passes(size) { next() } else { accounting::allocate(size, next) }
}

unsafe extern "C" fn calloc_for(count: usize, size: usize, caller: usize) -> *mut c_void {
    strict::before_allocation(caller);
    // SAFETY: the caller's.
    let next = move || unsafe { next::calloc(count, size) };
    match count.checked_mul(size) {
        Some(bytes) if !passes(bytes) => accounting::allocate(bytes, next),
        _ => next(),
    }
}

unsafe extern "C" fn free_for(pointer: *mut c_void, caller: usize) -> *mut c_void {
    if WIPED.may_hold(pointer.addr()) {
        accounting::forget(pointer);
    }
    // SAFETY: the caller's.
    unsafe { strict::free(pointer, caller) };
    // Nobody looks at it; all functions of the family are exported with one type.
    std::ptr::null_mut()
}

unsafe extern "C" fn realloc_for(pointer: *mut c_void, size: usize, caller: usize) -> *mut c_void {
    strict::before_allocation(caller);
    // SAFETY: the caller's.
    let next = move || unsafe { strict::realloc(pointer, size) };
    if !WIPED.may_hold(pointer.addr()) && passes(size) {
        next()
    } else {
        accounting::reallocate(pointer, size, next)
    }
}

unsafe extern "C" fn reallocarray_for(
    pointer: *mut c_void,
    count: usize,
    size: usize,
    caller: usize,
) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: the caller's.
        Some(bytes) => unsafe { realloc_for(pointer, bytes, caller) },
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
