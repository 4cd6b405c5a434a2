//! A suspended thread is a guard that resumes when dropped.

use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::time::Duration;

use windows_sys::Win32::Foundation::{FILETIME, LocalFree};
use windows_sys::Win32::System::Diagnostics::Debug::{CONTEXT, CONTEXT_FULL_AMD64, GetThreadContext};
use windows_sys::Win32::System::Threading::{
    GetThreadDescription, GetThreadTimes, OpenThread, ResumeThread, SuspendThread, THREAD_GET_CONTEXT,
    THREAD_QUERY_INFORMATION, THREAD_SUSPEND_RESUME,
};

use crate::identity::ThreadId;
use crate::registers::Registers;

use super::process::own;

/// A thread that can be asked about.
pub(super) struct Thread {
    pub(super) id: ThreadId,
    handle: OwnedHandle,
}

/// A thread that stands still.
pub(super) struct Stopped(pub(super) Thread);

/// `GetThreadContext` wants a context aligned as the processor's own.
#[repr(align(16))]
pub(super) struct Context(pub(super) CONTEXT);

impl Thread {
    pub(super) fn open(id: ThreadId) -> io::Result<Thread> {
        let rights = THREAD_SUSPEND_RESUME | THREAD_GET_CONTEXT | THREAD_QUERY_INFORMATION;
        // SAFETY: returns a new handle or null.
        own(unsafe { OpenThread(rights, 0, id.0) }).map(|handle| Thread { id, handle })
    }

    /// What the thread was named; empty when it has no name.
    pub(super) fn name(&self) -> String {
        let mut text = std::ptr::null_mut();
        // SAFETY: on success the system hands over a NUL-terminated string, which we free once.
        unsafe {
            if GetThreadDescription(self.handle.as_raw_handle(), &mut text) < 0 || text.is_null() {
                return String::new();
            }
            let length = (0..).take_while(|at| *text.add(*at) != 0).count();
            let name = String::from_utf16_lossy(std::slice::from_raw_parts(text, length));
            LocalFree(text.cast());
            name
        }
    }

    /// Processor time used so far. The system counts it in ticks of its clock.
    pub(super) fn cpu(&self) -> Duration {
        let mut times = [FILETIME::default(); 4];
        let [created, exited, kernel, user] = &mut times;
        // SAFETY: four valid places for the answers.
        unsafe { GetThreadTimes(self.handle.as_raw_handle(), created, exited, kernel, user) };
        let ticks = |time: &FILETIME| u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
        Duration::from_nanos((ticks(kernel) + ticks(user)) * 100)
    }

    /// Asks the thread to stop.
    pub(super) fn suspend(self) -> io::Result<Stopped> {
        // SAFETY: the handle is open with the right to suspend.
        if unsafe { SuspendThread(self.handle.as_raw_handle()) } == u32::MAX {
            return Err(io::Error::last_os_error());
        }
        Ok(Stopped(self))
    }
}

impl Stopped {
    /// The machine state; waits until the thread really stands still.
    pub(super) fn context(&self) -> io::Result<Context> {
        let mut context = Context(CONTEXT { ContextFlags: CONTEXT_FULL_AMD64, ..CONTEXT::default() });
        // SAFETY: the context is aligned and lives across the call.
        let done = unsafe { GetThreadContext(self.0.handle.as_raw_handle(), &mut context.0) };
        if done == 0 { Err(io::Error::last_os_error()) } else { Ok(context) }
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // SAFETY: the handle is open with the right to resume, and the count was raised by us.
        unsafe { ResumeThread(self.0.handle.as_raw_handle()) };
    }
}

/// Windows's order of registers in DWARF's.
pub(super) fn registers(context: &CONTEXT) -> Registers {
    let CONTEXT { Rax, Rdx, Rcx, Rbx, Rsi, Rdi, Rbp, Rsp, R8, R9, R10, R11, R12, R13, R14, R15, Rip, .. } =
        *context;
    Registers::all([Rax, Rdx, Rcx, Rbx, Rsi, Rdi, Rbp, Rsp, R8, R9, R10, R11, R12, R13, R14, R15, Rip])
}
