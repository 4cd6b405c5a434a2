//! Threads that have finished and are on their way out of the process.

use windows_sys::Win32::Foundation::{CloseHandle, WAIT_OBJECT_0};
use windows_sys::Win32::System::Threading::{GetThreadId, WaitForSingleObject};

use super::{Token, outside};

/// Real milliseconds that a finished thread may take to leave the process. It runs what modules do at the end of a thread;
/// should that wait for a thread of the run, the run has to go on.
const LAST_WORDS: u32 = 2000;

/// Waits until the thread that finished is gone, if one did.
#[inline]
pub(super) fn see_off(me: &mut Token) {
    if !me.run().system.leaving.is_null() {
        wait_for_end(me);
    }
}

/// Waits until the thread that finished is gone. Modules run code of their own at the end of a thread, beside the
/// schedule; this way nobody else runs meanwhile.
#[cold]
fn wait_for_end(me: &mut Token) {
    let leaving = core::mem::replace(&mut me.run().system.leaving, core::ptr::null_mut());
    // SAFETY: the handle is ours.
    unsafe {
        let known = GetThreadId(leaving);
        if WaitForSingleObject(leaving, LAST_WORDS) != WAIT_OBJECT_0 {
            me.run().note_uncontrolled();
        }
        outside::take_letters(me, known);
        CloseHandle(leaving);
    }
    // A mutex that it held can be had by others from now on.
    let run = me.run();
    run.system.handles.look_at_mutexes(&mut run.sched);
}
