//! Windows: unhandled exceptions, inherited handles, and small system calls.

use std::ffi::{c_int, c_void};
use std::fs::File;
use std::io;
use std::os::windows::io::{FromRawHandle, IntoRawHandle};
use std::path::Path;

use waylay_page::SharedHandle;
use windows_sys::Win32::Foundation::{HANDLE, HANDLE_FLAG_INHERIT, SetHandleInformation};
use windows_sys::Win32::Storage::FileSystem::WriteFile;
use windows_sys::Win32::System::Console::{
    CTRL_BREAK_EVENT, CTRL_C_EVENT, GetStdHandle, STD_ERROR_HANDLE, STD_INPUT_HANDLE, SetConsoleCtrlHandler,
    SetStdHandle,
};
use windows_sys::Win32::System::Diagnostics::Debug::{
    AddVectoredExceptionHandler, CONTEXT, EXCEPTION_POINTERS, RtlCaptureContext, SEM_FAILCRITICALERRORS,
    SEM_NOGPFAULTERRORBOX, SEM_NOOPENFILEERRORBOX, SetErrorMode, SetUnhandledExceptionFilter,
};
use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleA, GetProcAddress};
use windows_sys::Win32::System::Memory::{PAGE_GUARD, PAGE_READWRITE, VirtualProtect};
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, GetCurrentThreadId, GetCurrentThreadStackLimits, INFINITE, SetThreadStackGuarantee,
    Sleep, TerminateProcess,
};
use windows_sys::core::BOOL;

use super::windows_throws;
use crate::fatal::{FatalSignal, on_fatal_signal};

/// Stack that is kept for the handler of a stack overflow: it lays out the state of the machine and waits.
const KEPT_STACK: u32 = 64 * 1024;
const PAGE: usize = 4096;

/// The number that stands for `abort`: the one Windows has for a process that ended itself.
const ABORTED: u32 = 0x4000_0015;
const ACCESS_VIOLATION: u32 = 0xc000_0005;
const STACK_OVERFLOW: u32 = 0xc000_00fd;
const IN_PAGE_ERROR: u32 = 0xc000_0006;

/// # Safety
///
/// `raw` must be an open handle that nothing else in this process owns.
pub(crate) unsafe fn file_from_raw(raw: i64) -> File {
    keep_from_children(raw);
    // SAFETY: passed on to our caller.
    unsafe { File::from_raw_handle(raw as isize as HANDLE) }
}

/// # Safety
///
/// As [`file_from_raw`].
pub(crate) unsafe fn shared_handle(raw: i64) -> SharedHandle {
    // SAFETY: passed on to our caller. It keeps itself from children.
    unsafe { SharedHandle::from_raw(raw as i32) }
}

/// A process that a test starts must not inherit our handles: it would keep the driver's pipes open.
fn keep_from_children(raw: i64) {
    // SAFETY: changes a flag of a handle that the driver gave us.
    unsafe { SetHandleInformation(raw as isize as HANDLE, HANDLE_FLAG_INHERIT, 0) };
}

/// Nothing is loaded into programs that tests start because of a variable; what names handles means nothing to them.
pub(crate) fn forget_what_we_were_told() {}

pub(crate) fn make_stdin_empty() -> io::Result<()> {
    let null = File::open("NUL")?.into_raw_handle();
    // SAFETY: the handle is open and stays so: it is standard input from now on.
    if unsafe { SetStdHandle(STD_INPUT_HANDLE, null) } == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Loads a library. What it depends on is looked for beside it first.
///
/// # Safety
///
/// Runs the library's constructors.
pub(crate) unsafe fn open_library(path: &Path) -> Result<libloading::Library, libloading::Error> {
    use libloading::os::windows::{LOAD_WITH_ALTERED_SEARCH_PATH, Library};
    // SAFETY: a process-wide setting: errors are returned, not shown in a window that nobody closes.
    unsafe { SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX | SEM_NOOPENFILEERRORBOX) };
    // Only an absolute path has a folder in which dependencies are looked for.
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // SAFETY: passed on to our caller.
    let library = unsafe { Library::load_with_flags(path, LOAD_WITH_ALTERED_SEARCH_PATH) }?;
    super::windows_calls::cover_modules();
    // It may have brought a runtime of its own.
    watch_runtimes();
    Ok(library.into())
}

pub(crate) fn thread_id() -> u32 {
    // SAFETY: returns a number.
    unsafe { GetCurrentThreadId() }
}

/// The driver may open any process that it starts, and its job ends us with it. What happens to the console is for the
/// driver to decide, too: it ends the campaign in order.
pub(crate) fn belong_to_parent(_die_together: bool) {
    // SAFETY: the handler is a static function.
    unsafe { SetConsoleCtrlHandler(Some(on_console_event), 1) };
}

/// Runs on a thread of its own that the system makes for it.
unsafe extern "system" fn on_console_event(event: u32) -> BOOL {
    if event != CTRL_C_EVENT && event != CTRL_BREAK_EVENT {
        // The console closes: the process would be ended when this returns, and the driver is still at work.
        wait_for_the_end()
    }
    1
}

/// The driver's job ends this process when the driver is gone: whoever gets here is no orphan.
pub(crate) fn leave_if_orphaned() {}

pub(crate) fn write_stderr(line: &[u8]) {
    let mut written = 0;
    // One call per line keeps lines of different threads apart.
    // SAFETY: the slice is readable for its length.
    unsafe {
        let stderr = GetStdHandle(STD_ERROR_HANDLE);
        WriteFile(stderr, line.as_ptr(), line.len() as u32, &mut written, std::ptr::null_mut());
    }
}

pub(crate) fn leave_at_once() -> ! {
    end(0)
}

/// Ends this process without running anything of it.
pub(super) fn end(code: u32) -> ! {
    // SAFETY: flushing all C streams, then leaving without exit handlers.
    unsafe {
        libc::fflush(std::ptr::null_mut());
        TerminateProcess(GetCurrentProcess(), code);
    }
    wait_for_the_end()
}

pub(crate) fn at_exit(handler: extern "C" fn()) {
    unsafe extern "C" {
        fn atexit(handler: extern "C" fn()) -> c_int;
    }
    // SAFETY: the handler is a static function.
    unsafe { atexit(handler) };
}

pub(crate) fn wait_for_the_end() -> ! {
    loop {
        // SAFETY: waits; the driver ends the process.
        unsafe { Sleep(INFINITE) };
    }
}

// ---- memory accounting ----

/// No tag at all.
pub(crate) const NO_TAG: u32 = u32::MAX;

pub(crate) use super::windows_heap::{heap_tag, set_heap_tag};

// ---- backtraces of the calling thread ----

/// Return addresses of the calling thread, innermost first.
pub(crate) fn backtrace(buffer: &mut [usize]) -> &[usize] {
    use windows_sys::Win32::System::Diagnostics::Debug::RtlCaptureStackBackTrace;
    let room = buffer.len().min(usize::from(u16::MAX)) as u32;
    // SAFETY: the buffer has room for that many addresses; the last argument may be null.
    let count =
        unsafe { RtlCaptureStackBackTrace(0, room, buffer.as_mut_ptr().cast(), std::ptr::null_mut()) };
    &buffer[..usize::from(count)]
}

// ---- fatal exceptions ----

pub(crate) fn install_fatal_handlers() {
    // SAFETY: both handlers are static functions.
    unsafe {
        SetUnhandledExceptionFilter(Some(on_exception));
        AddVectoredExceptionHandler(1, Some(on_any_exception));
    }
    watch_for_abort();
    watch_runtimes();
}

/// Every C runtime has handlers of its own for invalid parameters and pure calls; those that are loaded now are told.
fn watch_runtimes() {
    type InvalidParameter = unsafe extern "C" fn(*const u16, *const u16, *const u16, u32, usize);
    type SetInvalidParameter = unsafe extern "C" fn(InvalidParameter) -> usize;
    type PureCall = extern "C" fn();
    type SetPureCall = unsafe extern "C" fn(PureCall) -> usize;
    for runtime in [c"ucrtbase.dll", c"msvcrt.dll"] {
        // SAFETY: looks a name up; nothing is loaded.
        let module = unsafe { GetModuleHandleA(runtime.as_ptr().cast()) };
        if module.is_null() {
            continue;
        }
        // SAFETY: looks names up; the functions have these types in every runtime that exports them.
        unsafe {
            if let Some(set) = GetProcAddress(module, c"_set_invalid_parameter_handler".as_ptr().cast()) {
                std::mem::transmute::<unsafe extern "system" fn() -> isize, SetInvalidParameter>(set)(
                    on_invalid_parameter,
                );
            }
            if let Some(set) = GetProcAddress(module, c"_set_purecall_handler".as_ptr().cast()) {
                std::mem::transmute::<unsafe extern "system" fn() -> isize, SetPureCall>(set)(on_pure_call);
            }
        }
    }
}

/// Begins to account for memory, and to note whose a thread is.
pub(crate) fn prepare_threads_of_tests() {
    super::windows_calls::begin();
}

/// Keeps some stack for the handler, so that a stack overflow can be reported too.
pub(crate) fn prepare_thread() {
    let (mut kept, mut start, mut end) = (KEPT_STACK, 0, 0);
    // SAFETY: a setting of the calling thread, and two places for answers.
    unsafe {
        SetThreadStackGuarantee(&mut kept);
        GetCurrentThreadStackLimits(&mut start, &mut end);
    }
    if end - start < 4 * KEPT_STACK as usize || stack_limit() > start + 4 * PAGE {
        return;
    }
    // A stack that is committed as a whole, as Wine's are, has its guard at its very end, too late for what is kept.
    let mut before = 0;
    // SAFETY: a page of this thread's own stack, far below where it is now. A guard page there is what the system
    // itself puts into a stack that grows.
    unsafe {
        let guard = (start + KEPT_STACK as usize) as *const c_void;
        VirtualProtect(guard, PAGE, PAGE_READWRITE | PAGE_GUARD, &mut before)
    };
}

/// The lowest address of this thread's stack that is committed.
fn stack_limit() -> usize {
    let limit: usize;
    // SAFETY: the third word of the block that this register points to on every thread.
    unsafe {
        std::arch::asm!("mov {}, gs:[0x10]", out(reg) limit, options(nostack, preserves_flags, readonly));
    }
    limit
}

/// Nobody handled it: runs on the thread and stack that raised the exception. The rest is as after a signal.
unsafe extern "system" fn on_exception(pointers: *const EXCEPTION_POINTERS) -> i32 {
    const SEARCH_ON: i32 = 0;
    // SAFETY: the system hands us a valid record and context.
    let (record, context) = unsafe { (&*(*pointers).ExceptionRecord, &*(*pointers).ContextRecord) };
    let code = record.ExceptionCode as u32;
    let address = match code {
        ACCESS_VIOLATION | IN_PAGE_ERROR => record.ExceptionInformation[1] as u64,
        _ => record.ExceptionAddress as u64,
    };
    hand_over(code, address, &[], context);
    SEARCH_ON
}

/// Every exception comes by here first; of a stack overflow there may not be stack enough to get any further.
unsafe extern "system" fn on_any_exception(pointers: *mut EXCEPTION_POINTERS) -> i32 {
    const SEARCH_ON: i32 = 0;
    // SAFETY: the system hands us a valid record and context.
    let (record, context) = unsafe { (&*(*pointers).ExceptionRecord, &*(*pointers).ContextRecord) };
    if record.ExceptionCode as u32 == STACK_OVERFLOW {
        hand_over(STACK_OVERFLOW, context.Rsp, &[], context);
    }
    // SAFETY: as above.
    windows_throws::note(unsafe { &*pointers });
    SEARCH_ON
}

fn watch_for_abort() {
    // SAFETY: the handler is a static function.
    unsafe { libc::signal(libc::SIGABRT, on_abort as extern "C" fn(c_int) as usize) };
}

extern "C" fn on_abort(_signal: c_int) {
    // The C library forgets a handler when it calls it; another thread may abort meanwhile.
    watch_for_abort();
    report_here(ABORTED, b"");
}

unsafe extern "C" fn on_invalid_parameter(
    _expression: *const u16,
    _function: *const u16,
    _file: *const u16,
    _line: u32,
    _reserved: usize,
) {
    report_here(ABORTED, b"a function of the C library was given an invalid parameter");
}

extern "C" fn on_pure_call() {
    report_here(ABORTED, b"a pure virtual function was called");
}

/// Reports from where the calling thread is.
fn report_here(code: u32, message: &[u8]) {
    #[repr(align(16))]
    struct Aligned(CONTEXT);
    let mut context = Aligned(CONTEXT::default());
    // SAFETY: the context is aligned as the processor wants it and filled by the call.
    unsafe { RtlCaptureContext(&mut context.0) };
    hand_over(code, 0, message, &context.0);
}

/// Lays an exception out as the driver reads it: like the structures of a signal, code for signal (see the crash context
/// of `waylay-evidence`).
fn hand_over(code: u32, address: u64, message: &[u8], context: &CONTEXT) {
    const GENERAL: usize = 40;
    let mut siginfo = [0; 24];
    siginfo[..4].copy_from_slice(&code.to_le_bytes());
    siginfo[8] = u8::from(code != ABORTED);
    siginfo[16..].copy_from_slice(&address.to_le_bytes());
    let c = context;
    let general = [
        c.R8, c.R9, c.R10, c.R11, c.R12, c.R13, c.R14, c.R15, c.Rdi, c.Rsi, c.Rbp, c.Rbx, c.Rdx, c.Rax,
        c.Rcx, c.Rsp, c.Rip,
    ];
    let mut machine = [0; GENERAL + 23 * 8 + 8];
    for (index, value) in general.into_iter().enumerate() {
        let at = GENERAL + index * 8;
        machine[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    on_fatal_signal(&FatalSignal {
        signal: code,
        sender: None,
        is_request: false,
        address,
        message,
        siginfo: &siginfo,
        machine: &machine,
    });
}

/// No process has our handlers but the host: Windows does not fork.
pub(crate) fn take_default_action(_signal: &FatalSignal<'_>) {}
