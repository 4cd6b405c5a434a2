//! Windows: a console is given back as it was, also by a process that ends in the middle of an event.

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use windows_sys::Win32::System::Console::{
    GetConsoleMode, GetStdHandle, STD_ERROR_HANDLE, STD_HANDLE, STD_INPUT_HANDLE, SetConsoleMode,
};

/// Leaves the other screen, shows the cursor, ends colours.
const AS_BEFORE: &[u8] = b"\x1b[?1049l\x1b[?25h\x1b[0m";

static INPUT: AtomicU32 = AtomicU32::new(0);
static OUTPUT: AtomicU32 = AtomicU32::new(0);
static TAKEN: AtomicBool = AtomicBool::new(false);

fn mode(of: STD_HANDLE) -> Option<u32> {
    let mut mode = 0;
    // SAFETY: a handle of this process and a place for the answer.
    let asked = unsafe { GetConsoleMode(GetStdHandle(of), &mut mode) };
    (asked != 0).then_some(mode)
}

/// Remembers how the console is, before a program changes it. False when there is none.
pub(crate) fn remember_terminal() -> bool {
    let (Some(input), Some(output)) = (mode(STD_INPUT_HANDLE), mode(STD_ERROR_HANDLE)) else { return false };
    INPUT.store(input, Ordering::Relaxed);
    OUTPUT.store(output, Ordering::Relaxed);
    TAKEN.store(true, Ordering::Release);
    true
}

/// Gives the console back if it was taken.
pub(crate) fn give_back_terminal() {
    if TAKEN.swap(false, Ordering::AcqRel) {
        let _ = std::io::stderr().write_all(AS_BEFORE);
        // SAFETY: handles of this process.
        unsafe {
            SetConsoleMode(GetStdHandle(STD_INPUT_HANDLE), INPUT.load(Ordering::Relaxed));
            SetConsoleMode(GetStdHandle(STD_ERROR_HANDLE), OUTPUT.load(Ordering::Relaxed));
        }
    }
}

/// Whether it was taken and not given back yet.
pub(crate) fn is_terminal_taken() -> bool {
    TAKEN.load(Ordering::Acquire)
}
