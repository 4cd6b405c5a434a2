//! Breakpoints, where no jump fits, and faults in moved code.
//!
//! At a breakpoint a thread is sent to the code that takes the instruction's place; the step is made there, as behind a
//! jump. A fault in a moved instruction is made to look as if it had happened in the program's own place, whose bytes are put
//! back first: Windows looks at instructions to find out what a function has done to its stack.

use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::sync::Once;

use windows_sys::Win32::Foundation::EXCEPTION_BREAKPOINT;
use windows_sys::Win32::System::Diagnostics::Debug::{
    AddVectoredExceptionHandler, EXCEPTION_POINTERS, RemoveVectoredExceptionHandler,
};

use super::table;

const CONTINUE_EXECUTION: i32 = -1;
const CONTINUE_SEARCH: i32 = 0;

/// What Windows calls our place among those who want to know; null until there is one.
static PLACE: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// Catches both from now on, in front of whoever else wants to know.
pub(super) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(take_first_place);
}

/// Somebody else wants to be the first to know: what it does not expect, it takes for a crash.
pub(crate) fn stay_in_front() {
    if !PLACE.load(Ordering::Acquire).is_null() {
        take_first_place();
    }
}

fn take_first_place() {
    // SAFETY: the handler is a static function. There are two of it for a moment, never none.
    unsafe {
        let before = PLACE.swap(AddVectoredExceptionHandler(1, Some(on_exception)), Ordering::AcqRel);
        if !before.is_null() {
            RemoveVectoredExceptionHandler(before);
        }
    }
}

unsafe extern "system" fn on_exception(pointers: *mut EXCEPTION_POINTERS) -> i32 {
    // SAFETY: the system passes a whole record and context of the thread that raised it.
    let (record, context) = unsafe { (&mut *(*pointers).ExceptionRecord, &mut *(*pointers).ContextRecord) };
    let at = record.ExceptionAddress as usize;
    if record.ExceptionCode == EXCEPTION_BREAKPOINT
        && let Some(to) = table::trap(at)
    {
        context.Rip = to as u64;
        return CONTINUE_EXECUTION;
    }
    if let Some((module, origin)) = table::origin(context.Rip as usize)
        && module.put_back(origin)
    {
        if at as u64 == context.Rip {
            record.ExceptionAddress = origin as *mut c_void;
        }
        context.Rip = origin as u64;
    }
    CONTINUE_SEARCH
}
