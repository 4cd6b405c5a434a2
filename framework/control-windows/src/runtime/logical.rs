//! A logical thread of a run.

use core::ffi::c_void;

use waylay_schedule::ThreadId;
use windows_sys::Win32::Foundation::HANDLE;

use crate::sys::Signal;

/// What a thread runs.
pub(crate) type Routine = unsafe extern "system" fn(*mut c_void) -> u32;

/// One logical thread, on a kernel thread of its own.
#[derive(Debug)]
pub(crate) struct Logical {
    /// Its number in the run; `u32::MAX` until it takes part.
    pub(crate) id: ThreadId,
    /// The token.
    pub(crate) baton: Signal,
    /// Its kernel thread has reached its place.
    pub(crate) started: Signal,
    /// The system's number, and a handle of our own; the main thread has none.
    pub(crate) number: u32,
    pub(crate) handle: HANDLE,
    pub(crate) routine: Option<Routine>,
    pub(crate) argument: *mut c_void,
    /// More than 0 while it holds something that nobody must run into, the loader's lock: no step of its own lets others
    /// run.
    pub(crate) unpreemptible: u32,
    /// The error number that the program sees when the library returns to it.
    pub(crate) error: u32,
    /// Next in the list of arrivals.
    pub(crate) next_arrival: *mut Logical,
}

impl Logical {
    pub(crate) fn new(routine: Option<Routine>, argument: *mut c_void) -> Box<Logical> {
        Box::new(Logical {
            id: ThreadId(u32::MAX),
            baton: Signal::new(),
            started: Signal::new(),
            number: 0,
            handle: core::ptr::null_mut(),
            routine,
            argument,
            unpreemptible: 0,
            error: 0,
            next_arrival: core::ptr::null_mut(),
        })
    }
}
