//! Linux: a terminal is given back as it was, also by a process that ends in the middle of a signal.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};

/// Leaves the other screen, shows the cursor, ends colours.
const AS_BEFORE: &[u8] = b"\x1b[?1049l\x1b[?25h\x1b[0m";

struct Kept(UnsafeCell<MaybeUninit<libc::termios>>);

// SAFETY: written once, before `TAKEN` is set, and read only after it was seen to be set.
unsafe impl Sync for Kept {}

static KEPT: Kept = Kept(UnsafeCell::new(MaybeUninit::uninit()));
/// Somebody has written, or is about to write, `KEPT`: that is done once in the life of a process.
static WRITTEN: AtomicBool = AtomicBool::new(false);
/// The terminal is taken and to be given back.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Remembers how the terminal is, before a program changes it. False when standard error is none.
pub(crate) fn remember_terminal() -> bool {
    if !WRITTEN.swap(true, Ordering::AcqRel) {
        // SAFETY: whoever comes first is the only one who writes, and nobody reads before `TAKEN` is set.
        let asked = unsafe { libc::tcgetattr(libc::STDERR_FILENO, (*KEPT.0.get()).as_mut_ptr()) };
        if asked != 0 {
            WRITTEN.store(false, Ordering::Release);
            return false;
        }
    }
    TAKEN.store(true, Ordering::Release);
    true
}

/// Gives the terminal back if it was taken. Makes async-signal-safe calls only.
pub(crate) fn give_back_terminal() {
    if TAKEN.swap(false, Ordering::AcqRel) {
        // SAFETY: the settings were written before `TAKEN` was set; both calls may be made in a signal handler.
        unsafe {
            libc::write(libc::STDERR_FILENO, AS_BEFORE.as_ptr().cast(), AS_BEFORE.len());
            libc::tcsetattr(libc::STDERR_FILENO, libc::TCSANOW, (*KEPT.0.get()).as_ptr());
        }
    }
}

/// Whether it was taken and not given back yet.
pub(crate) fn is_terminal_taken() -> bool {
    TAKEN.load(Ordering::Acquire)
}
