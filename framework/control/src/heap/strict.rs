//! What strict mode adds to allocating and freeing: steps, and the guard. Nothing at all elsewhere.

use std::ffi::c_void;

use super::next;

/// Code at `caller` is about to allocate.
#[inline(always)]
pub(super) fn before_allocation(caller: usize) {
    #[cfg(target_arch = "x86_64")]
    crate::runtime::calls::before_allocation(caller);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = caller;
}

/// Frees a block for code at `caller`. A switch before shows what was looked at for too long, one after it what is
/// still pointed to.
///
/// # Safety
/// As for `free`.
#[inline(always)]
pub(super) unsafe fn free(pointer: *mut c_void, caller: usize) {
    #[cfg(target_arch = "x86_64")]
    if crate::runtime::calls::are_steps() || super::guard::is_on() {
        // SAFETY: the caller's.
        return unsafe { free_under_control(pointer, caller) };
    }
    let _ = caller;
    // SAFETY: the caller's.
    unsafe { next::free(pointer) }
}

#[cfg(target_arch = "x86_64")]
#[cold]
#[inline(never)]
unsafe fn free_under_control(pointer: *mut c_void, caller: usize) {
    use crate::runtime::calls;
    if pointer.is_null() {
        return;
    }
    calls::at_free(caller, pointer.addr());
    // SAFETY: the caller's.
    unsafe {
        if super::guard::is_on() {
            super::guard::free(pointer, calls::whereabouts());
        } else {
            next::free(pointer);
        }
    }
    calls::at_free(caller, pointer.addr());
}

/// Reallocates; under the guard what grows also moves.
///
/// # Safety
/// As for `realloc`.
#[inline(always)]
pub(super) unsafe fn realloc(pointer: *mut c_void, size: usize) -> *mut c_void {
    #[cfg(target_arch = "x86_64")]
    if super::guard::is_on()
        && !pointer.is_null()
        // SAFETY: the caller's.
        && let Some(old) = unsafe { super::guard::moves(pointer, size) }
    {
        // SAFETY: the new block is longer than the old one, which the caller gives up.
        unsafe {
            let block = next::malloc(size);
            if !block.is_null() {
                block.cast::<u8>().copy_from_nonoverlapping(pointer.cast(), old);
                super::guard::free(pointer, crate::runtime::calls::whereabouts());
            }
            return block;
        }
    }
    // SAFETY: the caller's.
    unsafe { next::realloc(pointer, size) }
}
