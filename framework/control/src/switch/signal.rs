//! A binary event that one kernel thread waits for and another raises.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::sys;

/// Raised or not. One waiter at a time; raising twice before the waiter looks is one raise.
#[derive(Debug)]
pub(crate) struct Signal(AtomicU32);

impl Signal {
    pub(crate) const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Waits until raised, then lowers.
    pub(crate) fn wait(&self) {
        while self.0.load(Ordering::Acquire) == 0 {
            sys::futex_wait(&self.0, 0);
        }
        self.0.store(0, Ordering::Relaxed);
    }

    /// Raises and wakes the waiter.
    pub(crate) fn raise(&self) {
        self.0.store(1, Ordering::Release);
        sys::futex_wake(&self.0);
    }
}
