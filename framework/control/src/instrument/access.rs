//! An access of the running thread becomes a step, or does not: what `waylay-accesses` decides.
//!
//! Called by the thread that is about to make the access, outside of everything the library does on its own account:
//! there, and in threads that are not under control, the identity is null and nothing happens.

use waylay_accesses::{Promise, access};

pub(super) use waylay_accesses::Access;

use super::watch::{Linux, watch};
use crate::me::{Unmanaged, me};
use crate::runtime::runtime;

/// An atomic operation, or a volatile access: always a step.
#[inline]
pub(super) fn atomic(access: Access) {
    let me = me();
    if !me.is_null() {
        let _inside = Unmanaged::enter();
        // SAFETY: a logical thread that runs program code holds the token.
        unsafe { access::atomic::<Linux>(me, access) };
    }
}

/// An access of a runtime that orders threads by it: no step, but what comes before it comes before what others do after.
#[inline]
pub(super) fn ordering(access: Access) {
    let me = me();
    if !me.is_null() {
        let _inside = Unmanaged::enter();
        // SAFETY: a logical thread that runs program code holds the token.
        unsafe { access::ordering::<Linux>(me, access) };
    }
}

/// A fence that a compiler reports.
pub(super) fn fences(promise: Promise) {
    let me = me();
    if !me.is_null() {
        let _inside = Unmanaged::enter();
        // SAFETY: a logical thread that runs program code holds the token.
        unsafe { access::fence::<Linux>(me, promise) };
    }
}

/// A plain access: a step if it is worth one.
#[inline]
pub(super) fn plain(access: Access) {
    let me = me();
    if !me.is_null() {
        let _inside = Unmanaged::enter();
        // SAFETY: a logical thread that runs program code holds the token.
        unsafe { access::plain::<Linux>(me, access) };
    }
}

/// An access that reads and then writes, in one instruction that others can come in between on a real machine: two steps.
#[inline]
pub(super) fn read_write(access: Access) {
    let me = me();
    if !me.is_null() {
        let _inside = Unmanaged::enter();
        // SAFETY: a logical thread that runs program code holds the token.
        unsafe { access::read_write::<Linux>(me, access) };
    }
}

/// The program says that it waits for others.
pub(super) fn pause(code: usize) {
    let me = me();
    if !me.is_null() {
        let _inside = Unmanaged::enter();
        // SAFETY: a logical thread that runs program code holds the token.
        unsafe { access::pause::<Linux>(me, code) };
    }
}

/// A library was loaded in the middle of a run.
///
/// # Safety
/// The caller holds the token.
pub(super) unsafe fn modules_loaded(first_new: usize) {
    // SAFETY: by the caller's promise.
    unsafe { (*watch()).attend_to_new(&(*runtime()).region, first_new) };
}
