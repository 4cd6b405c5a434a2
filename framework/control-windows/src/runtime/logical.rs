//! A logical thread of a run.

use core::ffi::c_void;

use waylay_schedule::ThreadId;
use windows_sys::Win32::Foundation::HANDLE;

use super::pool::Worker;
use super::renewal::Slots;
use crate::sys::Signal;

/// What a thread runs.
pub(crate) type Routine = unsafe extern "system" fn(*mut c_void) -> u32;

/// One logical thread, on a kernel thread of its own.
#[derive(Debug)]
pub(crate) struct Logical {
    /// Its number in the run; `u32::MAX` until it takes part.
    pub(crate) id: ThreadId,
    /// The token, unless it has a kernel thread of the pool.
    own_baton: Signal,
    /// Its kernel thread, if that is one of the pool.
    pub(super) worker: *mut Worker,
    /// What it wrote into slots of that.
    pub(crate) slots: Slots,
    /// What its routine returned.
    pub(crate) result: u32,
    /// Its kernel thread has reached its place.
    pub(crate) started: Signal,
    /// The system's number, and a handle of our own; the main thread has none.
    pub(crate) number: u32,
    pub(crate) handle: HANDLE,
    pub(crate) routine: Option<Routine>,
    pub(crate) argument: *mut c_void,
    /// Its stack: begin and end, of all that is reserved for it.
    pub(crate) stack: (usize, usize),
    /// Somebody has seen it end.
    pub(crate) joined: bool,
    /// More than 0 while it holds something that nobody must run into, the loader's lock: no step of its own lets others
    /// run.
    pub(crate) unpreemptible: u32,
    /// The error number that the program sees when the library returns to it.
    pub(crate) error: u32,
    /// Next in the list of arrivals.
    pub(crate) next_arrival: *mut Logical,
}

impl Logical {
    /// The token: raised by whoever passes it on, waited for by whoever wants it back.
    #[inline]
    pub(super) fn baton(&self) -> &Signal {
        // SAFETY: threads of the pool live as long as the process.
        unsafe { self.worker.as_ref() }.map_or(&self.own_baton, |worker| &worker.baton)
    }

    pub(crate) fn new(routine: Option<Routine>, argument: *mut c_void) -> Box<Logical> {
        Box::new(Logical {
            id: ThreadId(u32::MAX),
            own_baton: Signal::new(),
            worker: core::ptr::null_mut(),
            slots: Slots::new(),
            result: 0,
            started: Signal::new(),
            number: 0,
            handle: core::ptr::null_mut(),
            routine,
            argument,
            stack: (0, 0),
            joined: false,
            unpreemptible: 0,
            error: 0,
            next_arrival: core::ptr::null_mut(),
        })
    }
}
