//! Exceptions that nobody handles: the process can be held where one was raised.

use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::sync::OnceLock;

use waylay_control_protocol::report::HeldAt;
use windows_sys::Win32::System::Diagnostics::Debug as real;
use windows_sys::Win32::System::Diagnostics::Debug::{
    EXCEPTION_POINTERS, LPTOP_LEVEL_EXCEPTION_FILTER, PVECTORED_EXCEPTION_HANDLER,
};
use windows_sys::Win32::System::Threading::GetCurrentThreadId;

use super::interpose;
use crate::{patch, sys};

type Filter = unsafe extern "system" fn(*const EXCEPTION_POINTERS) -> i32;

const HANDLED_AND_GO_ON: i32 = -1;

/// What the program set, and where to say that the process is held.
static PROGRAMS: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());
static REPORT: OnceLock<Option<&'static waylay_control_protocol::Report>> = OnceLock::new();

/// Makes unhandled exceptions end the process at once, with the exception as its status and without a window that nobody
/// closes; or hold it, and say so in `report`.
pub(crate) fn watch_for_faults(report: Option<&'static waylay_control_protocol::Report>) {
    if REPORT.set(report).is_ok() {
        // SAFETY: the filter is a static function.
        remember(unsafe { real::SetUnhandledExceptionFilter(Some(on_exception)) });
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
    if let Some(Some(report)) = REPORT.get() {
        // SAFETY: plain call.
        report.held_thread.store(unsafe { GetCurrentThreadId() }, Ordering::Relaxed);
        report.held_value.store(pointers as u64, Ordering::Relaxed);
        report.held.store(HeldAt::Exception as u32, Ordering::Release);
        sys::hold();
    }
    // SAFETY: the system hands us a valid record.
    sys::exit_now(unsafe { (*(*pointers).ExceptionRecord).ExceptionCode })
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

/// The program's handler comes behind ours all the same.
unsafe fn add_handler(first: u32, handler: PVECTORED_EXCEPTION_HANDLER) -> *mut c_void {
    // SAFETY: passed on.
    let added = unsafe { real::AddVectoredExceptionHandler(first, handler) };
    if first != 0 {
        patch::stay_in_front();
    }
    added
}

interpose! {
    fn SetUnhandledExceptionFilter(filter: LPTOP_LEVEL_EXCEPTION_FILTER) -> LPTOP_LEVEL_EXCEPTION_FILTER
        = set_filter(filter), |_| { set_filter(filter) }

    fn AddVectoredExceptionHandler(first: u32, handler: PVECTORED_EXCEPTION_HANDLER) -> *mut c_void
        = add_handler(first, handler), |_| { add_handler(first, handler) }
}
