//! What the interposed functions tell the scheduler about objects and those who wait for them.

use waylay_runtime::point;
use waylay_schedule::{Event, EventKind, ObjectId};
use waylay_scheduler::{Key, Shares};

use super::logical::Logical;
use super::runtime;

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

/// Wakes up to `count` waiting threads.
///
/// # Safety
/// The caller holds the token.
pub(crate) unsafe fn wake(key: Key, count: u32) {
    // SAFETY: by the caller's promise.
    unsafe { (*runtime()).sched.wake(key, count, Shares::ALL) };
}

/// Runs `work`, which may block in the kernel, while others go on.
///
/// # Safety
/// `me` executes the call and holds the token; `work` touches nothing of the run.
pub(crate) unsafe fn away<R>(me: *mut Logical, work: impl FnOnce() -> R) -> R {
    // SAFETY: by the caller's promise.
    unsafe { point::away(me, Event::new(EventKind::BlockingReturn, ObjectId::UNKNOWN), work) }
}
