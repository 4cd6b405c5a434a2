//! Ending the process.

use core::sync::atomic::Ordering;

use waylay_control_protocol::Ending;
use waylay_control_protocol::report::HeldAt;
use waylay_schedule::{Event, EventKind, ThreadId};
use windows_sys::Win32::Foundation::HANDLE;
use windows_sys::Win32::System::Threading as real;
use windows_sys::Win32::System::Threading::GetCurrentProcessId;
use windows_sys::core::BOOL;

use super::interpose;
use crate::me::{as_program, me, set_me};
use crate::runtime::{Logical, finalise, hold_if_wanted, runtime, step};

/// The status of a process that ended itself with `abort`, in the C runtimes of Windows.
pub(super) const ABORTED: u32 = 3;

/// What runs when the process ends in order, after the program's exit handlers.
pub(crate) fn at_unload() {
    if !me().is_null() {
        // SAFETY: a logical thread that runs program code, exit handlers included, has the token.
        unsafe { finalise(Ending::Exited) };
        set_me(core::ptr::null_mut());
    }
}

/// Stays here for ever if the driver wants to look at a process that ends with this status.
///
/// # Safety
/// `me` executes the call and holds the token.
pub(super) unsafe fn hold(me: *mut Logical, status: u32) {
    // SAFETY: by the caller's promise.
    unsafe {
        if (*runtime()).settings.hold == 0 || (*runtime()).settings.in_process != 0 {
            return;
        }
        let report = (*runtime()).region.report();
        report.held_value.store(u64::from(status), Ordering::Relaxed);
        report.held_thread.store((*me).number, Ordering::Relaxed);
        finalise(Ending::Exited);
        report.held.store(HeldAt::Exit as u32, Ordering::Release);
        hold_if_wanted();
    }
}

interpose! {
    fn ExitProcess(status: u32) -> ! = real::ExitProcess(status), |me| {
        step(me, Event::on_thread(EventKind::ProcessExit, ThreadId::MAIN));
        hold(me, status);
        as_program(me, || real::ExitProcess(status))
    }

    fn TerminateProcess(process: HANDLE, status: u32) -> BOOL = real::TerminateProcess(process, status), |me| {
        if real::GetProcessId(process) == GetCurrentProcessId() {
            step(me, Event::on_thread(EventKind::ProcessExit, ThreadId::MAIN));
            hold(me, status);
            finalise(Ending::Exited);
        }
        real::TerminateProcess(process, status)
    }
}
