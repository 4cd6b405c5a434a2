//! Windows: calls of the system that libraries make through us: what ends the process is told with the stack that did it,
//! a thread that a test starts is known as its, and the heap is accounted for (`windows_heap`).

use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use windows_sys::Win32::Foundation::{GetLastError, HANDLE, SetLastError};
use windows_sys::Win32::Security::SECURITY_ATTRIBUTES;
use windows_sys::Win32::System::Threading::{GetCurrentProcess, GetCurrentProcessId, GetProcessId};

use super::windows_heap::{self, heap_tag, set_heap_tag};
use super::windows_imports::{Replacement, addresses_of, original, replace_in_libraries};

type ExitProcess = unsafe extern "system" fn(u32) -> !;
type TerminateProcess = unsafe extern "system" fn(HANDLE, u32) -> i32;
type ThreadStart = unsafe extern "system" fn(*mut c_void) -> u32;
type CreateThread = unsafe extern "system" fn(
    *const SECURITY_ATTRIBUTES,
    usize,
    Option<ThreadStart>,
    *mut c_void,
    u32,
    *mut u32,
) -> HANDLE;

/// What is replaced, once it is known.
static REPLACEMENTS: OnceLock<Vec<Replacement>> = OnceLock::new();
static CREATE_THREAD: AtomicUsize = AtomicUsize::new(0);
static TERMINATE_PROCESS: AtomicUsize = AtomicUsize::new(0);

/// Watches over what is loaded now.
pub(super) fn begin() {
    let Some(mut all) = windows_heap::begin() else { return };
    let exit = addresses_of(&[c"ExitProcess", c"RtlExitUserProcess"]);
    let ours = exit_process as ExitProcess as usize;
    all.extend(exit.into_iter().map(|original| Replacement { original, ours }));
    for (name, ours, place) in [
        (c"TerminateProcess", terminate_process as TerminateProcess as usize, &TERMINATE_PROCESS),
        (c"CreateThread", create_thread as CreateThread as usize, &CREATE_THREAD),
    ] {
        let addresses = addresses_of(&[name]);
        if let Some(first) = addresses.first() {
            place.store(*first, Ordering::Release);
            all.extend(addresses.into_iter().map(|original| Replacement { original, ours }));
        }
    }
    REPLACEMENTS.get_or_init(|| all);
    cover_modules();
}

/// Watches over modules that were loaded since the last call.
pub(super) fn cover_modules() {
    if let Some(replacements) = REPLACEMENTS.get() {
        replace_in_libraries(replacements);
    }
}

// ---- threads ----

/// What a thread is to do, and whose it is.
struct Start {
    routine: ThreadStart,
    argument: *mut c_void,
    tag: u32,
}

unsafe extern "system" fn create_thread(
    security: *const SECURITY_ATTRIBUTES,
    stack: usize,
    routine: Option<ThreadStart>,
    argument: *mut c_void,
    flags: u32,
    id: *mut u32,
) -> HANDLE {
    let next = original!(CREATE_THREAD as CreateThread);
    let tag = heap_tag();
    let Some(routine) = routine.filter(|_| tag != 0) else {
        // SAFETY: the caller's.
        return unsafe { next(security, stack, routine, argument, flags, id) };
    };
    let start = Box::into_raw(Box::new(Start { routine, argument, tag }));
    // SAFETY: the caller's; the new thread takes the box over.
    let thread = unsafe { next(security, stack, Some(begin_thread), start.cast(), flags, id) };
    if thread.is_null() {
        // SAFETY: as above; freeing may change the error that the caller is about to ask for.
        unsafe {
            let error = GetLastError();
            drop(Box::from_raw(start));
            SetLastError(error);
        }
    }
    thread
}

/// The first code of ours on a thread that a test started.
unsafe extern "system" fn begin_thread(argument: *mut c_void) -> u32 {
    // SAFETY: made by `create_thread` for this thread alone.
    let Start { routine, argument, tag } = *unsafe { Box::from_raw(argument.cast::<Start>()) };
    set_heap_tag(tag);
    super::prepare_thread();
    crate::fatal::note_thread_of_test();
    // SAFETY: what the test asked for.
    unsafe { routine(argument) }
}

// ---- the end of the process ----

/// Past all handlers of the C library: nobody else could tell who called it, and from where.
unsafe extern "system" fn exit_process(code: u32) -> ! {
    crate::fatal::exit_was_called(b"the test called ExitProcess()");
    super::end(code)
}

unsafe extern "system" fn terminate_process(process: HANDLE, code: u32) -> i32 {
    // SAFETY: returns a number that stands for this process; asking for the number of another one does nothing else.
    if unsafe { process == GetCurrentProcess() || GetProcessId(process) == GetCurrentProcessId() } {
        crate::fatal::exit_was_called(b"the test called TerminateProcess() on itself");
    }
    let next = original!(TERMINATE_PROCESS as TerminateProcess);
    // SAFETY: the caller's.
    unsafe { next(process, code) }
}
