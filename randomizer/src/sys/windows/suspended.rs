//! States of a thread as types: one that runs can be asked to stop, one that is suspended is a guard that resumes.

use std::io;
use std::mem::MaybeUninit;
use std::os::windows::io::{AsRawHandle, OwnedHandle};

use windows_sys::Win32::Foundation::ERROR_INVALID_PARAMETER;
use windows_sys::Win32::System::Diagnostics::Debug::{CONTEXT, GetThreadContext};
use windows_sys::Win32::System::Threading::{
    OpenThread, ResumeThread, SuspendThread, THREAD_ACCESS_RIGHTS, THREAD_GET_CONTEXT,
    THREAD_QUERY_LIMITED_INFORMATION, THREAD_SUSPEND_RESUME, THREAD_SYNCHRONIZE,
};

use crate::identity::ThreadId;

use super::ledger::Ledger;
use super::process::{is_over, own};

/// What we need of a thread.
pub(super) const RIGHTS: THREAD_ACCESS_RIGHTS =
    THREAD_SUSPEND_RESUME | THREAD_GET_CONTEXT | THREAD_QUERY_LIMITED_INFORMATION | THREAD_SYNCHRONIZE;

/// What the calls say instead of a count.
const FAILED: u32 = u32::MAX;

/// A thread of the target. While the handle is open its number is not given to another thread.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) id: ThreadId,
    handle: OwnedHandle,
}

/// Why a thread was not suspended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Gone,
    Denied,
}

impl Thread {
    pub(super) fn open(id: ThreadId) -> Result<Thread, Refusal> {
        // SAFETY: returns a new handle or null.
        match own(unsafe { OpenThread(RIGHTS, 0, id.0) }) {
            Ok(handle) => Ok(Thread { id, handle }),
            Err(error) if error.raw_os_error() == Some(ERROR_INVALID_PARAMETER as i32) => Err(Refusal::Gone),
            Err(_) => Err(Refusal::Denied),
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        is_over(&self.handle)
    }

    /// Asks the thread to stop. It may run on for a moment: see [`Suspended::confirm`].
    pub(super) fn suspend<'a>(&'a self, ledger: &'a Ledger, place: usize) -> Result<Suspended<'a>, Refusal> {
        ledger.enter(place, self.id);
        // SAFETY: the handle is open with the right to suspend.
        if unsafe { SuspendThread(self.handle.as_raw_handle()) } == FAILED {
            ledger.clear(place);
            return Err(if self.has_ended() { Refusal::Gone } else { Refusal::Denied });
        }
        Ok(Suspended { thread: self, ledger, place })
    }
}

/// A suspended thread; dropping it resumes.
#[must_use]
#[derive(Debug)]
pub(super) struct Suspended<'a> {
    pub(super) thread: &'a Thread,
    ledger: &'a Ledger,
    place: usize,
}

/// `GetThreadContext` wants a context aligned as the processor's own.
#[repr(align(16))]
struct Aligned(MaybeUninit<CONTEXT>);

impl Suspended<'_> {
    /// Waits until the thread really stands still: `SuspendThread` only asks, but the registers of a thread can be told
    /// only when it has stopped.
    pub(super) fn confirm(&self) -> io::Result<()> {
        #[cfg(target_arch = "x86_64")]
        use windows_sys::Win32::System::Diagnostics::Debug::CONTEXT_CONTROL_AMD64 as CONTROL;
        #[cfg(target_arch = "aarch64")]
        use windows_sys::Win32::System::Diagnostics::Debug::CONTEXT_CONTROL_ARM64 as CONTROL;
        let mut context = Aligned(MaybeUninit::zeroed());
        // SAFETY: zeroes are a valid context; it is aligned and lives across the call.
        let done = unsafe {
            (*context.0.as_mut_ptr()).ContextFlags = CONTROL;
            GetThreadContext(self.thread.handle.as_raw_handle(), context.0.as_mut_ptr())
        };
        if done == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

impl Drop for Suspended<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is open with the right to resume, and the count was raised by us.
        unsafe { ResumeThread(self.thread.handle.as_raw_handle()) };
        self.ledger.clear(self.place);
    }
}

/// Lowers the count of a thread that somebody who is gone has raised once.
pub(super) fn heal(id: ThreadId) -> bool {
    let Ok(thread) = Thread::open(id) else { return false };
    // SAFETY: the handle is open with the right to resume.
    unsafe { ResumeThread(thread.handle.as_raw_handle()) != FAILED }
}
