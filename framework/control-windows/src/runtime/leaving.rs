//! Threads that have finished and are on their way out of the process.

use windows_sys::Win32::Foundation::{CloseHandle, WAIT_OBJECT_0};
use windows_sys::Win32::System::Threading::{GetThreadId, WaitForSingleObject};

use super::{outside, runtime};

/// Real milliseconds that a finished thread may take to leave the process. It runs what modules do at the end of a thread;
/// should that wait for a thread of the run, the run has to go on.
const LAST_WORDS: u32 = 2000;

/// Waits until the thread that finished is gone, if one did.
///
/// # Safety
/// The caller holds the token.
#[inline]
pub(super) unsafe fn see_off() {
    // SAFETY: by the caller's promise.
    unsafe {
        if !(*runtime()).system.leaving.is_null() {
            wait_for_end();
        }
    }
}

/// Waits until the thread that finished is gone. Modules run code of their own at the end of a thread, beside the
/// schedule; this way nobody else runs meanwhile.
///
/// # Safety
/// The caller holds the token.
#[cold]
unsafe fn wait_for_end() {
    // SAFETY: by the caller's promise; the handle is ours.
    unsafe {
        let leaving = core::mem::replace(&mut (*runtime()).system.leaving, core::ptr::null_mut());
        let known = GetThreadId(leaving);
        if WaitForSingleObject(leaving, LAST_WORDS) != WAIT_OBJECT_0 {
            (*runtime()).note_uncontrolled();
        }
        outside::take_letters(known);
        CloseHandle(leaving);
        // A mutex that it held can be had by others from now on.
        (*runtime()).system.handles.look_at_mutexes(&mut (*runtime()).sched);
    }
}
