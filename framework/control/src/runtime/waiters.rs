//! What the interposed functions tell the scheduler about objects and those who wait for them.

use super::logical::Logical;
use super::runtime;
use crate::sched::{Key, Shares};

/// What `key` names was taken: those who want one of `shares` have to wait now.
///
/// # Safety
/// The caller holds the token.
#[inline]
pub(crate) unsafe fn taken(key: Key, shares: Shares) {
    // SAFETY: by the caller's promise.
    unsafe { (*runtime()).sched.taken(key, shares) }
}

/// What `key` names is free for those who want one of `shares`.
///
/// # Safety
/// The caller holds the token.
#[inline]
pub(crate) unsafe fn freed(key: Key, shares: Shares) {
    // SAFETY: by the caller's promise.
    unsafe { (*runtime()).sched.freed(key, shares) }
}

/// Wakes up to `count` waiting threads; returns how many there were.
///
/// # Safety
/// The caller holds the token.
pub(crate) unsafe fn wake(key: Key, count: u32, shares: Shares) -> u32 {
    // SAFETY: by the caller's promise.
    unsafe { (*runtime()).sched.wake(key, count, shares) }
}

/// Wakes up to `count` waiting threads and lets up to `moved` more wait for `to` instead; returns how many there were.
///
/// # Safety
/// The caller holds the token.
pub(crate) unsafe fn wake_or_move(key: Key, count: u32, to: Key, moved: u32) -> u32 {
    // SAFETY: by the caller's promise.
    unsafe {
        let woken = wake(key, count, Shares::ALL);
        woken + (*runtime()).sched.requeue(key, to, moved)
    }
}

/// How many threads wait for `key`.
///
/// # Safety
/// The caller holds the token.
pub(crate) unsafe fn waiting_on(key: Key) -> u32 {
    // SAFETY: by the caller's promise.
    unsafe { (*runtime()).sched.waiting_on(key) }
}

/// Ends the wait of a thread, if it waits.
///
/// # Safety
/// The caller holds the token; `thread` has not finished.
pub(crate) unsafe fn interrupt(thread: *mut Logical) {
    // SAFETY: by the caller's promise.
    unsafe { (*runtime()).sched.interrupt((*thread).id) };
}

/// Ends the wait of a thread, or the next one that it begins: it is to end there.
///
/// # Safety
/// The caller holds the token; `thread` has not finished.
pub(crate) unsafe fn call_off(thread: *mut Logical) {
    // SAFETY: by the caller's promise.
    unsafe { (*runtime()).sched.call_off((*thread).id) };
}
