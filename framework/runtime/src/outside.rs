//! What threads outside the schedule and logical threads have to tell each other, for as long as a run goes on.

use core::sync::atomic::{AtomicBool, Ordering};

static RUNNING: AtomicBool = AtomicBool::new(false);
static WAITERS: AtomicBool = AtomicBool::new(false);

/// A run begins or ends.
pub fn set_running(running: bool) {
    RUNNING.store(running, Ordering::Release);
}

/// Whether what a thread outside does may concern a run.
#[inline]
pub fn is_running() -> bool {
    RUNNING.load(Ordering::Relaxed)
}

/// A thread outside the schedule waits on an object whose real counterpart logical threads do not signal otherwise.
#[inline]
pub fn waits() {
    if is_running() {
        WAITERS.store(true, Ordering::Relaxed);
    }
}

/// Whether signals and wake-ups have to reach real waiters too.
#[inline]
pub fn may_wait() -> bool {
    WAITERS.load(Ordering::Relaxed)
}
