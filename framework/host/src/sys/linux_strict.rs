//! Linux: runs under the control library, and the threads of a schedule.

use std::ffi::{c_int, c_void};
use std::io;
use std::sync::atomic::{AtomicPtr, Ordering};

pub(crate) use waylay_control_protocol::Begun;
use waylay_control_protocol::{
    BEGIN_RUN, BeginRun, EARLIER_RUNS, END_RUN, Earlier, EarlierRuns, EndRun, RunSummary, STOP_RUN, StopRun,
    TEST_FAILED_STATUS,
};

/// The functions of the control library by which runs are made.
pub(crate) struct RunControl {
    begin: BeginRun,
    end: EndRun,
    earlier: EarlierRuns,
}

/// Found before it is needed: a signal handler cannot look it up.
static STOP: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

impl RunControl {
    /// The functions, if the library was loaded before us.
    pub(crate) fn find() -> Option<RunControl> {
        let stop = look_up(STOP_RUN)?;
        STOP.store(stop, Ordering::Release);
        // SAFETY: the control library exports these names with these types.
        unsafe {
            Some(RunControl {
                begin: std::mem::transmute::<*mut c_void, BeginRun>(look_up(BEGIN_RUN)?),
                end: std::mem::transmute::<*mut c_void, EndRun>(look_up(END_RUN)?),
                earlier: std::mem::transmute::<*mut c_void, EarlierRuns>(look_up(EARLIER_RUNS)?),
            })
        }
    }

    /// Begins a run on the calling thread.
    pub(crate) fn begin(&self, run: u64) -> Begun {
        // SAFETY: only one thread of the host makes runs, and none goes on.
        match unsafe { (self.begin)(run) } {
            code if code == Begun::Yes as u32 => Begun::Yes,
            code if code == Begun::Exhausted as u32 => Begun::Exhausted,
            _ => Begun::Refused,
        }
    }

    /// Ends the run, which may have failed.
    pub(crate) fn end(&self, failed: bool) -> RunSummary {
        let mut summary = RunSummary::default();
        // SAFETY: the calling thread began the run; the summary is writable.
        unsafe { (self.end)(u32::from(failed), &raw mut summary) };
        summary
    }

    /// The runs that come before the one that this process was started for.
    pub(crate) fn earlier(&self) -> impl Iterator<Item = u64> {
        let mut earlier = Earlier::default();
        // SAFETY: the only thread that makes runs asks before the first; the answer is writable.
        unsafe { (self.earlier)(&raw mut earlier) };
        earlier.runs()
    }
}

fn look_up(name: &str) -> Option<*mut c_void> {
    let name = std::ffi::CString::new(name).ok()?;
    // SAFETY: looks the name up among all loaded libraries.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// Stops the run that goes on: the calling thread keeps the processor, nothing else of the schedule happens any more.
/// Safe in a signal handler.
pub(crate) fn stop_run() {
    let stop = STOP.load(Ordering::Acquire);
    if !stop.is_null() {
        // SAFETY: `find` stored a function of this type; the process is thrown away after a failure.
        unsafe { std::mem::transmute::<*mut c_void, StopRun>(stop)() };
    }
}

/// Ends a process without a driver because of a failure.
pub(crate) fn fail_alone(message: &[u8]) -> ! {
    super::write_stderr(&[b"waylay: the test failed: ", message, b"\n"].concat());
    // SAFETY: plain call; nothing of the process is needed any more.
    unsafe { libc::_exit(TEST_FAILED_STATUS) }
}

/// A thread that has to be joined.
pub(crate) struct Joinable(libc::pthread_t);

/// Starts a thread as C does: one of the standard library's would make a name, a signal stack and a handle each time.
///
/// # Safety
///
/// `argument` is what `routine` expects, for as long as the thread lives.
pub(crate) unsafe fn start_thread(
    routine: extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
) -> io::Result<Joinable> {
    let mut thread: libc::pthread_t = 0;
    // SAFETY: passed on to our caller.
    match unsafe { libc::pthread_create(&raw mut thread, std::ptr::null(), routine, argument) } {
        0 => Ok(Joinable(thread)),
        error => Err(io::Error::from_raw_os_error(error as c_int)),
    }
}

impl Joinable {
    /// Waits for its end.
    pub(crate) fn join(self) {
        // SAFETY: a thread that was started and not joined before, because `self` goes with it.
        unsafe { libc::pthread_join(self.0, std::ptr::null_mut()) };
    }
}
