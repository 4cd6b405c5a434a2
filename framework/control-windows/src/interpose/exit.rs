//! Ending the process.

use core::sync::atomic::Ordering;

use waylay_control_protocol::Ending;
use waylay_control_protocol::report::HeldAt;
use waylay_schedule::{Event, EventKind, ThreadId};
use windows_sys::Win32::Foundation::HANDLE;
use windows_sys::Win32::System::Threading as real;
use windows_sys::Win32::System::Threading::{GetCurrentProcessId, GetCurrentThreadId};
use windows_sys::core::BOOL;

use super::interpose;
use crate::me::{me, set_me};
use crate::runtime::{finalise, is_prepared_in_process, runtime, step};
use crate::sys;
use crate::watch::Windows;

/// The status of a process that ended itself with `abort`, in the C runtimes of Windows.
pub(super) const ABORTED: u32 = 3;

/// What runs when the process ends in order, after the program's exit handlers.
pub(crate) fn at_unload() {
    if !me().is_null() {
        // SAFETY: a logical thread that runs program code, exit handlers included, has the token.
        unsafe { finalise::<Windows>(Ending::Exited) };
        set_me(core::ptr::null_mut());
    }
}

/// Whether the driver wants to look at this process when it ends: a program, or a host that follows a recorded schedule.
/// Other hosts end by themselves when their runs are over.
unsafe fn is_looked_at() -> bool {
    // SAFETY: called with the token, or by a host between runs.
    unsafe {
        let (settings, region) = (&(*runtime()).settings, &(*runtime()).region);
        let follows = region.replay().is_some() || region.guidance().is_some();
        settings.hold != 0 && (settings.in_process == 0 || follows)
    }
}

/// Says that the process is held, and stays here for ever.
unsafe fn stay(status: u32) -> ! {
    // SAFETY: as for `is_looked_at`.
    unsafe {
        let report = (*runtime()).region.report();
        report.held_value.store(u64::from(status), Ordering::Relaxed);
        report.held_thread.store(GetCurrentThreadId(), Ordering::Relaxed);
        report.held.store(HeldAt::Exit as u32, Ordering::Release);
    }
    sys::hold()
}

/// Stays here for ever if the driver wants to look at a process that ends with this status.
///
/// # Safety
/// The running logical thread makes the call, and holds the token.
pub(super) unsafe fn hold(status: u32) {
    // SAFETY: by the caller's promise.
    unsafe {
        if is_looked_at() {
            finalise::<Windows>(Ending::Exited);
            stay(status);
        }
    }
}

/// The same for a host that made runs itself and ends.
unsafe fn hold_host(status: u32) {
    // SAFETY: a host ends itself between runs, or after a failure that stopped the run: nobody holds the token, or the
    // caller does.
    unsafe {
        if is_prepared_in_process() && is_looked_at() {
            stay(status);
        }
    }
}

unsafe fn terminate_outside(process: HANDLE, status: u32) -> BOOL {
    // SAFETY: by the caller's promise.
    unsafe {
        if real::GetProcessId(process) == GetCurrentProcessId() {
            hold_host(status);
        }
        real::TerminateProcess(process, status)
    }
}

unsafe fn exit_outside(status: u32) -> ! {
    // SAFETY: by the caller's promise.
    unsafe {
        hold_host(status);
        real::ExitProcess(status)
    }
}

interpose! {
    fn ExitProcess(status: u32) -> ! = exit_outside(status), |me| {
        step(me, Event::on_thread(EventKind::ProcessExit, ThreadId::MAIN));
        hold(status);
        // From here on nobody else can run: Windows ends the other threads first.
        finalise::<Windows>(Ending::Exited);
        real::ExitProcess(status)
    }

    fn TerminateProcess(process: HANDLE, status: u32) -> BOOL = terminate_outside(process, status), |me| {
        if real::GetProcessId(process) == GetCurrentProcessId() {
            step(me, Event::on_thread(EventKind::ProcessExit, ThreadId::MAIN));
            hold(status);
            finalise::<Windows>(Ending::Exited);
        }
        real::TerminateProcess(process, status)
    }
}
