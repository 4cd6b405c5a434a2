//! Ending the process.

use core::sync::atomic::Ordering;

use waylay_control_protocol::Ending;
use waylay_control_protocol::report::HeldAt;
use waylay_runtime::Run;
use waylay_schedule::{Event, EventKind, ThreadId};
use windows_sys::Win32::Foundation::HANDLE;
use windows_sys::Win32::System::Threading as real;
use windows_sys::Win32::System::Threading::{GetCurrentProcessId, GetCurrentThreadId};
use windows_sys::core::BOOL;

use super::interpose;
use crate::me::{me, set_me};
use crate::runtime::{Token, finalise, is_prepared_in_process, runtime, step};
use crate::sys;
use crate::watch::Windows;

/// The status of a process that ended itself with `abort`, in the C runtimes of Windows.
pub(super) const ABORTED: u32 = 3;

/// What runs when the process ends in order, after the program's exit handlers.
pub(crate) fn at_unload() {
    let me = me();
    if !me.is_null() {
        // SAFETY: a logical thread that runs program code, exit handlers included, has the token.
        finalise(unsafe { Token::held_by(me) }, Ending::Exited);
        set_me(core::ptr::null_mut());
    }
}

/// Whether the driver wants to look at this process when it ends: a program, or a host that follows a recorded schedule.
/// Other hosts end by themselves when their runs are over.
fn is_looked_at(run: &Run<Windows>) -> bool {
    let follows = run.region.replay().is_some() || run.region.guidance().is_some();
    run.settings.hold != 0 && (run.settings.in_process == 0 || follows)
}

/// Says that the process is held, and stays here for ever.
fn stay(run: &Run<Windows>, status: u32) -> ! {
    let report = run.region.report();
    report.held_value.store(u64::from(status), Ordering::Relaxed);
    // SAFETY: plain call.
    report.held_thread.store(unsafe { GetCurrentThreadId() }, Ordering::Relaxed);
    report.held.store(HeldAt::Exit as u32, Ordering::Release);
    sys::hold()
}

/// Stays here for ever if the driver wants to look at a process that ends with this status.
pub(super) fn hold(me: &mut Token, status: u32) {
    if is_looked_at(me.run()) {
        finalise(me, Ending::Exited);
        stay(me.run(), status);
    }
}

/// The same for a host that made runs itself and ends.
fn hold_host(status: u32) {
    if is_prepared_in_process() {
        // SAFETY: a host ends itself between runs, or after a failure that stopped the run: nobody holds the token, or the
        // caller does.
        let run = unsafe { &*runtime() };
        if is_looked_at(run) {
            stay(run, status);
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
        hold(me, status);
        // From here on nobody else can run: Windows ends the other threads first.
        finalise(me, Ending::Exited);
        real::ExitProcess(status)
    }

    fn TerminateProcess(process: HANDLE, status: u32) -> BOOL = terminate_outside(process, status), |me| {
        if real::GetProcessId(process) == GetCurrentProcessId() {
            step(me, Event::on_thread(EventKind::ProcessExit, ThreadId::MAIN));
            hold(me, status);
            finalise(me, Ending::Exited);
        }
        real::TerminateProcess(process, status)
    }
}
