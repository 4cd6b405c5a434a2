//! What strict mode adds to allocating and freeing: steps, and the guard. Nothing at all elsewhere.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{guard, next};
use crate::instrument::edge;
use crate::runtime::calls;

/// Whether calls go through this file. A byte, because assembly looks at it.
pub(super) static CONTROLLED: AtomicBool = AtomicBool::new(false);

/// From now on allocating and freeing may be steps, and freed blocks may be kept back.
pub(crate) fn take_control() {
    CONTROLLED.store(true, Ordering::Relaxed);
}

/// Allocating and freeing are told to those who follow them, in a run that has this for itself.
pub(crate) fn control_while(wanted: bool) {
    CONTROLLED.store(wanted, Ordering::Relaxed);
}

/// Code at `caller` is about to allocate.
pub(super) fn before_allocation(caller: usize) {
    calls::before_allocation(caller);
}

/// Code at `caller` was given a block.
#[inline(always)]
pub(super) fn allocated(block: *mut c_void, bytes: usize, caller: usize) -> *mut c_void {
    if edge::follows() && !block.is_null() {
        edge::allocated(block.addr(), bytes, caller);
    }
    block
}

/// The same for a block that was another one before, or had another length.
pub(super) fn reallocated(
    before: *mut c_void,
    block: *mut c_void,
    bytes: usize,
    caller: usize,
) -> *mut c_void {
    if before == block && edge::follows() && !block.is_null() {
        edge::resized(block.addr(), bytes);
        return block;
    }
    allocated(block, bytes, caller)
}

/// Frees a block for code at `caller`. A switch before shows what was looked at for too long, one after it what is
/// still pointed to.
///
/// # Safety
/// As for `free`.
pub(super) unsafe fn free(pointer: *mut c_void, caller: usize) {
    if pointer.is_null() {
        return;
    }
    calls::at_free(caller, pointer.addr());
    // SAFETY: the caller's.
    unsafe {
        if guard::is_on() {
            guard::free(pointer, calls::whereabouts());
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
pub(super) unsafe fn realloc(pointer: *mut c_void, size: usize) -> *mut c_void {
    if guard::is_on()
        && !pointer.is_null()
        // SAFETY: the caller's.
        && let Some(old) = unsafe { guard::moves(pointer, size) }
    {
        // SAFETY: the new block is longer than the old one, which the caller gives up.
        unsafe {
            let block = next::malloc(size);
            if !block.is_null() {
                block.cast::<u8>().copy_from_nonoverlapping(pointer.cast(), old);
                guard::free(pointer, calls::whereabouts());
            }
            return block;
        }
    }
    // SAFETY: the caller's.
    unsafe { next::realloc(pointer, size) }
}
