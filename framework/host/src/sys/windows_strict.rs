//! Windows: no control library yet, so no runs are made; threads of the system all the same.

use std::ffi::c_void;
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};

use windows_sys::Win32::System::Threading::{CreateThread, INFINITE, WaitForSingleObject};

/// Exit code of a process without a driver in which a test failed.
const TEST_FAILED: u32 = 1;

/// Whether a run began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "the twin makes them")]
pub(crate) enum Begun {
    /// It did.
    Yes,
    /// There is no further schedule.
    Exhausted,
    /// It cannot.
    Refused,
}

/// What makes runs: nothing, here. There is no value of this type.
pub(crate) enum RunControl {}

impl RunControl {
    /// None: no library is loaded before us.
    pub(crate) fn find() -> Option<RunControl> {
        None
    }

    /// Begins a run on the calling thread.
    pub(crate) fn begin(&self, _run: u64) -> Begun {
        match *self {}
    }

    /// Ends the run, which may have failed; returns how many threads it left behind.
    pub(crate) fn end(&self, _failed: bool) -> u32 {
        match *self {}
    }
}

/// No run goes on.
pub(crate) fn stop_run() {}

/// Ends a process without a driver because of a failure.
pub(crate) fn fail_alone(message: &[u8]) -> ! {
    super::write_stderr(&[b"waylay: the test failed: ", message, b"\n"].concat());
    super::windows::end(TEST_FAILED)
}

/// A thread that has to be joined.
pub(crate) struct Joinable(OwnedHandle);

/// What a thread is started with.
struct Start {
    routine: extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
}

unsafe extern "system" fn begin(start: *mut c_void) -> u32 {
    // SAFETY: made by `start_thread` for this thread alone.
    let Start { routine, argument } = *unsafe { Box::from_raw(start.cast::<Start>()) };
    routine(argument);
    0
}

/// Starts a thread.
///
/// # Safety
///
/// `argument` is what `routine` expects, for as long as the thread lives.
pub(crate) unsafe fn start_thread(
    routine: extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
) -> io::Result<Joinable> {
    let start = Box::into_raw(Box::new(Start { routine, argument }));
    // SAFETY: `begin` takes the start over; the rest is passed on to our caller.
    let handle =
        unsafe { CreateThread(std::ptr::null(), 0, Some(begin), start.cast(), 0, std::ptr::null_mut()) };
    if handle.is_null() {
        // SAFETY: no thread took it over.
        drop(unsafe { Box::from_raw(start) });
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just made, owned by nobody else.
    Ok(Joinable(unsafe { OwnedHandle::from_raw_handle(handle) }))
}

impl Joinable {
    /// Waits for its end.
    pub(crate) fn join(self) {
        // SAFETY: the handle is open.
        unsafe { WaitForSingleObject(self.0.as_raw_handle(), INFINITE) };
    }
}
