//! Stacks of suspended threads, in words.
//!
//! A thread knows its own stack best: to describe all of them, the inspecting thread resumes each in turn, which walks its
//! stack and passes the token back.

use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, Ordering};

use waylay_schedule::{Event, EventKind, ThreadId};
use waylay_scheduler::State;
use windows_sys::Win32::System::Diagnostics::Debug::RtlCaptureStackBackTrace;
use windows_sys::Win32::System::LibraryLoader::{
    GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS, GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT, GetModuleFileNameW,
    GetModuleHandleExW,
};

use super::handover::pass;
use super::logical::Logical;
use super::{SHARED, runtime};
use crate::interpose::owner_of_section;
use crate::sys::Text;

/// Frames of a stack that are told.
const FRAMES: usize = 48;

static INSPECTOR: AtomicPtr<Logical> = AtomicPtr::new(core::ptr::null_mut());

/// Adds the stack of every thread that is suspended, and of `inspector` itself, to the report.
///
/// # Safety
/// `inspector` executes the call and holds the token; no thread will ever run program code again.
pub(super) unsafe fn describe_all(inspector: *mut Logical) {
    INSPECTOR.store(inspector, Ordering::Relaxed);
    SHARED.inspecting.store(true, Ordering::Relaxed);
    // SAFETY: by the caller's promise.
    unsafe {
        for index in 0..(*runtime()).logicals.len() {
            let thread = (&(*runtime()).logicals)[index];
            let state = (*runtime()).sched.thread((*thread).id).state;
            // The inspector may be a thread that found out at its very end: it waits for nothing.
            if thread == inspector && state != State::Finished {
                describe(thread);
            } else if matches!(state, State::Blocked | State::Ready) {
                pass(inspector, thread);
            }
        }
    }
}

/// Describes the calling thread and passes the token back.
///
/// # Safety
/// `me` executes the call, and was resumed by [`describe_all`].
pub(super) unsafe fn describe_and_return(me: *mut Logical) {
    // SAFETY: the inspector waits for the token.
    unsafe {
        describe(me);
        pass(me, INSPECTOR.load(Ordering::Relaxed));
    }
}

/// Adds a line to the report in words.
///
/// # Safety
/// The caller holds the token.
pub(super) unsafe fn line(text: core::fmt::Arguments<'_>) {
    let line = Text::<1024>::line(text);
    // SAFETY: by the caller's promise.
    unsafe { (*runtime()).region.append_text(&String::from_utf8_lossy(line.bytes())) };
}

/// Adds the place of code to the report, unless it is our own.
///
/// # Safety
/// The caller holds the token.
pub(super) unsafe fn place(code: usize) {
    // SAFETY: by the caller's promise.
    unsafe { tell_frame(code) };
}

unsafe fn describe(me: *mut Logical) {
    // SAFETY: called with the token, by the thread that is described.
    unsafe {
        let thread = (*runtime()).sched.thread((*me).id);
        let (pending, state, steps) = (thread.pending, thread.state, thread.steps);
        let verb = if state == State::Blocked { "waits in" } else { "is about to do" };
        match holder(pending).filter(|_| state == State::Blocked) {
            Some(holder) => {
                line(format_args!("{} ({steps} steps) {verb} {pending}, held by {holder}", (*me).id))
            }
            None => line(format_args!("{} ({steps} steps) {verb} {pending}", (*me).id)),
        }
        let mut frames = [core::ptr::null_mut::<c_void>(); FRAMES];
        let count = RtlCaptureStackBackTrace(0, FRAMES as u32, frames.as_mut_ptr(), core::ptr::null_mut());
        for &frame in &frames[..usize::from(count)] {
            if !tell_frame(frame as usize) {
                break;
            }
        }
    }
}

/// The logical thread that holds the critical section a thread waits for.
unsafe fn holder(pending: Event) -> Option<ThreadId> {
    if pending.kind != EventKind::MutexLock {
        return None;
    }
    // SAFETY: a thread waits for the object, so it exists; called with the token.
    unsafe {
        let runtime = runtime();
        let object = pending.object.0 as usize;
        let owner = match (*runtime).mutexes.owner(object) {
            Some(owner) => owner?,
            None => (*runtime).handles.owner_of_mutex(object).or_else(|| owner_of_section(object))?,
        };
        (*runtime).by_number.get(&(owner as usize)).map(|&thread| (*thread).id)
    }
}

/// Tells one frame. False where there is no module: behind such code, which nothing says how to unwind, comes nothing that
/// could be trusted. The first instructions of an explored program are some.
unsafe fn tell_frame(address: usize) -> bool {
    let from = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
    let mut module = core::ptr::null_mut();
    let mut name = [0u16; 512];
    if address == 0 {
        return false;
    }
    // SAFETY: the address is only looked up; the name is written into the local. Called with the token.
    unsafe {
        // One byte back: a return address may lie behind the last instruction of the calling function.
        if GetModuleHandleExW(from, (address - 1) as *const u16, &mut module) == 0 {
            return false;
        }
        let length = GetModuleFileNameW(module, name.as_mut_ptr(), name.len() as u32) as usize;
        let path = String::from_utf16_lossy(&name[..length.min(name.len())]);
        if !path.ends_with("waylay_control_windows.dll") {
            line(format_args!("    {path}+{:#x}", address - module as usize));
        }
    }
    true
}
