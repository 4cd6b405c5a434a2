//! Stacks of the program's threads and who holds its locks, for the report of a run that ends.

use core::ffi::c_void;

use waylay_control_protocol::Statement;
use waylay_control_protocol::account::Place;
use waylay_runtime::{Stacks, inspect};
use waylay_schedule::{Event, EventKind, ThreadId};
use windows_sys::Win32::System::Diagnostics::Debug::RtlCaptureStackBackTrace;
use windows_sys::Win32::System::LibraryLoader::{
    GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS, GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT, GetModuleFileNameW,
    GetModuleHandleExW,
};

use super::Token;
use crate::interpose::owner_of_section;
use crate::watch::Windows;

/// Frames of a stack that are told.
const FRAMES: usize = 48;

impl Stacks for Windows {
    unsafe fn holder(me: &mut Token, pending: Event) -> Option<ThreadId> {
        if pending.kind != EventKind::MutexLock {
            return None;
        }
        // SAFETY: a thread waits for the object, so it exists.
        unsafe {
            let runtime = me.run();
            let object = pending.object.0 as usize;
            let owner = match runtime.system.mutexes.owner(object) {
                Some(owner) => owner?,
                None => runtime.system.handles.owner_of_mutex(object).or_else(|| owner_of_section(object))?,
            };
            runtime.system.by_number.get(&(owner as usize)).map(|&thread| (*thread).id)
        }
    }

    fn describe_stack(me: &mut Token) {
        let mut frames = [core::ptr::null_mut::<c_void>(); FRAMES];
        // SAFETY: as many frames are written as there is room for.
        let count =
            unsafe { RtlCaptureStackBackTrace(0, FRAMES as u32, frames.as_mut_ptr(), core::ptr::null_mut()) };
        for &frame in &frames[..usize::from(count)] {
            if !tell(me, frame as usize) {
                break;
            }
        }
    }

    fn place(me: &mut Token, code: usize) {
        tell(me, code);
    }
}

/// Tells one place of code, unless it is our own. False where there is no module: behind such code, which nothing says how to unwind, comes nothing that
/// could be trusted. The first instructions of an explored program are some.
fn tell(me: &mut Token, address: usize) -> bool {
    let from = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
    let mut module = core::ptr::null_mut();
    let mut name = [0u16; 512];
    if address == 0 {
        return false;
    }
    // SAFETY: the address is only looked up; the name is written into the local.
    unsafe {
        // One byte back: a return address may lie behind the last instruction of the calling function.
        if GetModuleHandleExW(from, (address - 1) as *const u16, &mut module) == 0 {
            return false;
        }
        let length = GetModuleFileNameW(module, name.as_mut_ptr(), name.len() as u32) as usize;
        let path = String::from_utf16_lossy(&name[..length.min(name.len())]);
        if !path.ends_with("waylay_control_windows.dll") {
            let place = Place::InModule(path.into(), (address - module as usize) as u64, None);
            inspect::tell(me, &Statement::Place(place));
        }
    }
    true
}
