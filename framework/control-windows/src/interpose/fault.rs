//! Exceptions that nobody handles: the process can be held where one was raised.

use core::sync::atomic::{AtomicPtr, Ordering};
use std::sync::OnceLock;

use waylay_control_protocol::report::HeldAt;
use windows_sys::Win32::System::Diagnostics::Debug as real;
use windows_sys::Win32::System::Diagnostics::Debug::{
    EXCEPTION_POINTERS, LPTOP_LEVEL_EXCEPTION_FILTER, SEM_FAILCRITICALERRORS, SEM_NOGPFAULTERRORBOX,
};
use windows_sys::Win32::System::Threading::GetCurrentThreadId;

use super::interpose;
use crate::sys;

type Filter = unsafe extern "system" fn(*const EXCEPTION_POINTERS) -> i32;

const HANDLED_AND_GO_ON: i32 = -1;

/// What the program set, and where to say that the process is held.
static PROGRAMS: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());
static REPORT: OnceLock<&'static waylay_control_protocol::Report> = OnceLock::new();

/// Makes unhandled exceptions end the process at once, without a window, or hold it when `report` is given.
pub(crate) fn watch_for_faults(report: Option<&'static waylay_control_protocol::Report>) {
    // SAFETY: process-wide settings; the filter is a static function.
    unsafe {
        real::SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX);
        if let Some(report) = report
            && REPORT.set(report).is_ok()
        {
            let before = real::SetUnhandledExceptionFilter(Some(on_exception));
            remember(before);
        }
    }
}

fn remember(filter: LPTOP_LEVEL_EXCEPTION_FILTER) -> *mut () {
    PROGRAMS.swap(filter.map_or(core::ptr::null_mut(), |filter| filter as *mut ()), Ordering::AcqRel)
}

unsafe extern "system" fn on_exception(pointers: *const EXCEPTION_POINTERS) -> i32 {
    let theirs = PROGRAMS.load(Ordering::Acquire);
    if !theirs.is_null() {
        // SAFETY: stored from a filter that the program set.
        let verdict = unsafe { core::mem::transmute::<*mut (), Filter>(theirs)(pointers) };
        if verdict == HANDLED_AND_GO_ON {
            return verdict;
        }
    }
    if let Some(report) = REPORT.get() {
        // SAFETY: plain call.
        report.held_thread.store(unsafe { GetCurrentThreadId() }, Ordering::Relaxed);
        report.held_value.store(pointers as u64, Ordering::Relaxed);
        report.held.store(HeldAt::Exception as u32, Ordering::Release);
        sys::hold();
    }
    0
}

unsafe fn set_filter(filter: LPTOP_LEVEL_EXCEPTION_FILTER) -> LPTOP_LEVEL_EXCEPTION_FILTER {
    if REPORT.get().is_none() {
        // SAFETY: passed on.
        return unsafe { real::SetUnhandledExceptionFilter(filter) };
    }
    let before = remember(filter);
    // SAFETY: what is kept is null or came from a filter.
    (!before.is_null()).then(|| unsafe { core::mem::transmute::<*mut (), Filter>(before) })
}

interpose! {
    fn SetUnhandledExceptionFilter(filter: LPTOP_LEVEL_EXCEPTION_FILTER) -> LPTOP_LEVEL_EXCEPTION_FILTER
        = set_filter(filter), |_| { set_filter(filter) }
}
