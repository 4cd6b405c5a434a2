//! Ctrl-C: the first is noted, so that what was found is written down; the second ends this process at once.

use std::sync::atomic::{AtomicU64, Ordering};

/// Two signals that are closer together are one: `timeout` sends one to the process and one to its group.
const APART_NS: u64 = 500_000_000;

/// When the first one came; 0 before.
static FIRST: AtomicU64 = AtomicU64::new(0);

extern "C" fn on_interrupt(_: libc::c_int) {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to the local; allowed in a handler.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    let now = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
    let first = FIRST.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed).err();
    if first.is_some_and(|first| now.saturating_sub(first) > APART_NS) {
        // SAFETY: leaves without running anything; the programs die with us.
        unsafe { libc::_exit(130) };
    }
}

/// From now on Ctrl-C (or SIGTERM, SIGHUP) is noted.
pub fn watch() {
    // SAFETY: an all-zero sigaction is a valid value to fill in, and the handler is async-signal-safe.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let handler: extern "C" fn(libc::c_int) = on_interrupt;
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_RESTART;
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    }
}

/// Whether the user wants to stop.
pub fn requested() -> bool {
    FIRST.load(Ordering::Relaxed) > 0
}
