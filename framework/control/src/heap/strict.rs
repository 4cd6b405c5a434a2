//! What strict mode adds to allocating and freeing: steps, and the guard. Nothing at all elsewhere.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{guard, next};
use crate::instrument::{delay, edge};
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
    if block.is_null() {
        return block;
    }
    if edge::follows() {
        edge::allocated(block.addr(), bytes, caller);
    }
    calls::tell_allocation(block.addr(), bytes);
    block
}

/// A block of `old` bytes became another one, or has another length: what is no longer in use was freed.
pub(super) fn reallocated(
    (before, old): (*mut c_void, usize),
    block: *mut c_void,
    bytes: usize,
    caller: usize,
) -> *mut c_void {
    if !edge::follows() || block.is_null() {
        if !block.is_null() && before != block {
            calls::tell_allocation(block.addr(), bytes);
        }
        return block;
    }
    if before != block {
        if !before.is_null() {
            edge::freed((before.addr(), old), caller, calls::frees(caller));
        }
        return allocated(block, bytes, caller);
    }
    if bytes < old {
        edge::freed((block.addr() + bytes, old - bytes), caller, calls::frees(caller));
    }
    edge::resized(block.addr(), bytes);
    block
}

/// How long a block is, if somebody wants to know: 0 otherwise.
pub(super) fn length(pointer: *mut c_void) -> usize {
    if pointer.is_null() || !(calls::are_steps() || edge::follows() || delay::is_on()) {
        return 0;
    }
    // SAFETY: a block of the allocator, by the promise of whoever is about to free it.
    unsafe { next::malloc_usable_size(pointer) }
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
    let block = (pointer.addr(), length(pointer));
    delay::release(block);
    calls::at_free(caller, block);
    if edge::follows() {
        edge::before_free(block, caller, calls::frees(caller));
        edge::freed(block, caller, calls::frees(caller));
    }
    // SAFETY: the caller's.
    unsafe {
        if guard::is_on() {
            guard::free(pointer, calls::whereabouts());
        } else {
            next::free(pointer);
        }
    }
    calls::at_free(caller, block);
}

/// Code at `caller` is about to reallocate a block of so many bytes, or to allocate one.
pub(super) fn before_reallocation(pointer: *mut c_void, bytes: usize, caller: usize) {
    if pointer.is_null() {
        return calls::before_allocation(caller);
    }
    let block = (pointer.addr(), bytes);
    delay::release(block);
    calls::at_free(caller, block);
    if edge::follows() {
        edge::before_free(block, caller, calls::frees(caller));
    }
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
