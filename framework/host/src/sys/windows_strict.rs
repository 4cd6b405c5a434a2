//! Windows: runs under the control library, and the threads of a schedule.

use std::ffi::c_void;
use std::io;
use std::os::windows::ffi::OsStrExt;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::path::Path;
use std::sync::atomic::{AtomicPtr, Ordering};

pub(crate) use waylay_control_protocol::Begun;
use waylay_control_protocol::{
    BEGIN_RUN, BeginRun, EARLIER_RUNS, END_RUN, Earlier, EarlierRuns, EndRun, RunSummary, STOP_RUN, StopRun,
    TEST_FAILED_STATUS,
};
use windows_sys::Win32::Foundation::HMODULE;
use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleW, GetProcAddress, LoadLibraryW};
use windows_sys::Win32::System::Threading::{CreateThread, INFINITE, WaitForSingleObject};

/// The file of the control library.
const LIBRARY: &str = "waylay_control_windows.dll";
/// Where it is, from the folder of the executable: where Cargo leaves it, with the plugins, beside the executable, or where
/// packages keep it.
const FOLDERS: [&str; 4] = ["deps", "plugins", ".", "../lib/waylay"];

/// The functions of the control library by which runs are made.
pub(crate) struct RunControl {
    begin: BeginRun,
    end: EndRun,
    earlier: EarlierRuns,
}

/// Found before it is needed: an exception filter cannot look it up.
static STOP: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

impl RunControl {
    /// The functions, if the library is in the process already or can be loaded.
    pub(crate) fn find() -> Option<RunControl> {
        let library = library()?;
        STOP.store(look_up(library, STOP_RUN)?, Ordering::Release);
        // SAFETY: the control library exports these names with these types.
        unsafe {
            Some(RunControl {
                begin: std::mem::transmute::<*mut c_void, BeginRun>(look_up(library, BEGIN_RUN)?),
                end: std::mem::transmute::<*mut c_void, EndRun>(look_up(library, END_RUN)?),
                earlier: std::mem::transmute::<*mut c_void, EarlierRuns>(look_up(library, EARLIER_RUNS)?),
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

fn library() -> Option<HMODULE> {
    let wide = |path: &Path| path.as_os_str().encode_wide().chain([0]).collect::<Vec<u16>>();
    // SAFETY: the name ends with a zero.
    let loaded = unsafe { GetModuleHandleW(wide(Path::new(LIBRARY)).as_ptr()) };
    if !loaded.is_null() {
        return Some(loaded);
    }
    let executable = std::env::current_exe().ok()?;
    let folder = executable.parent()?;
    let candidates = FOLDERS.iter().map(|place| folder.join(place).join(LIBRARY));
    // SAFETY: the path ends with a zero; the library's constructors only reserve a slot.
    let mut loaded =
        candidates.filter(|path| path.is_file()).map(|path| unsafe { LoadLibraryW(wide(&path).as_ptr()) });
    loaded.find(|library| !library.is_null())
}

fn look_up(library: HMODULE, name: &str) -> Option<*mut c_void> {
    let name = std::ffi::CString::new(name).ok()?;
    // SAFETY: the library is loaded for good, and the name ends with a zero.
    unsafe { GetProcAddress(library, name.as_ptr().cast()) }.map(|found| found as *mut c_void)
}

/// Stops the run that goes on: the calling thread keeps the processor, nothing else of the schedule happens any more.
/// Safe in an exception filter.
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
    super::windows::end(TEST_FAILED_STATUS as u32)
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
