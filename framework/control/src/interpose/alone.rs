//! What libc says about whether the process has one thread (`__libc_single_threaded`).
//!
//! The C++ library leaves out locks and atomic operations, which are steps, as long as it is said. A process that has its
//! threads in advance says it until the program creates its first one, as every other process does.

use core::sync::atomic::{AtomicU8, Ordering};

fn flag() -> Option<&'static AtomicU8> {
    // SAFETY: the name is NUL-terminated; where the symbol exists it is a byte that lives as long as libc.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__libc_single_threaded".as_ptr()).cast::<AtomicU8>().as_ref() }
}

/// What is said now.
pub(crate) fn is_said() -> bool {
    flag().is_some_and(|flag| flag.load(Ordering::Relaxed) != 0)
}

/// Says it, or that there are more threads.
pub(crate) fn say(alone: bool) {
    if let Some(flag) = flag() {
        flag.store(u8::from(alone), Ordering::Relaxed);
    }
}
