//! Holding a process where it ends.
//!
//! The control library holds the process: where it would end, at an exception that nobody handles, and where no thread can
//! run. It says so in the region, which is looked at here.

use std::ffi::c_void;
use std::io;
use std::os::windows::io::AsRawHandle;
use std::path::Path;
use std::process::Child;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use waylay_control_protocol::{DEADLOCK_STATUS, Ending, HeldAt, RACE_STATUS, RegionMap, STEP_LIMIT_STATUS};
use waylay_evidence::{CrashContext, ThreadId};
use windows_sys::Win32::Foundation::HANDLE;
use windows_sys::Win32::System::Diagnostics::Debug::{
    CONTEXT, EXCEPTION_POINTERS, EXCEPTION_RECORD, ReadProcessMemory,
};

use super::injection;
use super::server::command;
use crate::held::{HoldAt, Stop};
use crate::program::Program;
use crate::scratch::Workplace;
use crate::streams::Streams;

/// Pause between two looks into the region.
const PAUSE: Duration = Duration::from_millis(1);
/// How long a process that is not held may take from its last word to its end.
const END: Duration = Duration::from_secs(2);

/// The status of a process that did not end and was killed.
pub(crate) const LATE_STATUS: i32 = -1;

/// That of one that ended itself.
pub(crate) fn exit_status(status: i32) -> i32 {
    status
}

/// Starts the program with the library in it.
pub(crate) fn start(
    program: &Program,
    workplace: &Workplace,
    library: &Path,
    region: &RegionMap,
    streams: &Streams,
    // The library holds the process where it ends only.
    _at: HoldAt,
) -> io::Result<Child> {
    let mut command = command(program, workplace, region);
    streams.connect(&mut command)?;
    injection::spawn(command, library)
}

/// Looks until it is to end, where it holds itself; with its threads in the order of their creation.
pub(crate) fn follow(
    child: &mut Child,
    region: &RegionMap,
    until: Instant,
) -> io::Result<(Stop, Vec<ThreadId>)> {
    let stop = watch(child, region, until)?;
    Ok((stop, threads_of(region)))
}

fn watch(child: &mut Child, region: &RegionMap, until: Instant) -> io::Result<Stop> {
    let report = region.report();
    let mut ended_at = None;
    loop {
        let thread = ThreadId(report.held_thread.load(Ordering::Relaxed));
        let ending = region.ending();
        match HeldAt::from_code(report.held.load(Ordering::Acquire)) {
            Some(HeldAt::Exit) => {
                return Ok(Stop::Exit { thread, status: report.held_value.load(Ordering::Relaxed) as i32 });
            }
            Some(HeldAt::Exception) => {
                let pointers = report.held_value.load(Ordering::Relaxed);
                return crash_of(child.as_raw_handle(), thread, pointers)
                    .map(|crash| Stop::Signal(Box::new(crash)));
            }
            None => {}
        }
        match ending {
            Ending::Deadlock => return Ok(Stop::Exit { thread, status: DEADLOCK_STATUS }),
            Ending::Race => {
                // Said before the ending.
                let thread = ThreadId(report.held_thread.load(Ordering::Relaxed));
                return Ok(Stop::Exit { thread, status: RACE_STATUS });
            }
            Ending::StepLimit | Ending::Livelock | Ending::Awaiting => {
                return Ok(Stop::Exit { thread, status: STEP_LIMIT_STATUS });
            }
            _ => {}
        }
        if let Some(status) = child.try_wait()? {
            return Ok(Stop::Gone(status.code().unwrap_or(-1)));
        }
        // A run is over before its process is.
        if ending != Ending::Unfinished && Instant::now() > *ended_at.get_or_insert(Instant::now()) + END
            || Instant::now() >= until
        {
            return Ok(Stop::Late);
        }
        std::thread::sleep(PAUSE);
    }
}

/// As the library says. One that has ended, or is not told of, has no number that any thread has.
fn threads_of(region: &RegionMap) -> Vec<ThreadId> {
    let numbers = region.report().numbers.iter().map(|number| number.load(Ordering::Relaxed));
    let mut threads: Vec<ThreadId> = numbers.map(ThreadId).collect();
    let told = threads.iter().rposition(|&thread| thread != ThreadId(0));
    threads.truncate(told.map_or(0, |last| last + 1));
    threads
}

/// Reads one value of another process.
///
/// # Safety
/// Any bytes are a valid value of the type.
unsafe fn read<T: Default>(process: HANDLE, at: u64) -> io::Result<T> {
    let mut value = T::default();
    // SAFETY: as many bytes as the value has are written into it; any are valid, by the caller's promise.
    let read = unsafe {
        let to = (&raw mut value).cast::<c_void>();
        ReadProcessMemory(process, at as *const c_void, to, size_of::<T>(), std::ptr::null_mut())
    };
    if read == 0 { Err(io::Error::last_os_error()) } else { Ok(value) }
}

/// The state at an exception, laid out like the structures of a signal, as hosts do it.
fn crash_of(process: HANDLE, thread: ThreadId, pointers: u64) -> io::Result<CrashContext> {
    const ACCESS_VIOLATION: u32 = 0xc000_0005;
    const IN_PAGE_ERROR: u32 = 0xc000_0006;
    const GENERAL: usize = 40;
    // SAFETY: all three are plain numbers and addresses.
    let (record, c) = unsafe {
        let pointers: EXCEPTION_POINTERS = read(process, pointers)?;
        let record: EXCEPTION_RECORD = read(process, pointers.ExceptionRecord as u64)?;
        let context: CONTEXT = read(process, pointers.ContextRecord as u64)?;
        (record, context)
    };
    let code = record.ExceptionCode as u32;
    let address = match code {
        ACCESS_VIOLATION | IN_PAGE_ERROR => record.ExceptionInformation[1] as u64,
        _ => record.ExceptionAddress as u64,
    };
    let mut siginfo = [0; 24];
    siginfo[..4].copy_from_slice(&code.to_le_bytes());
    siginfo[8] = 1;
    siginfo[16..].copy_from_slice(&address.to_le_bytes());
    let general = [
        c.R8, c.R9, c.R10, c.R11, c.R12, c.R13, c.R14, c.R15, c.Rdi, c.Rsi, c.Rbp, c.Rbx, c.Rdx, c.Rax,
        c.Rcx, c.Rsp, c.Rip,
    ];
    let mut machine = [0; GENERAL + 23 * 8 + 8];
    for (index, value) in general.into_iter().enumerate() {
        let at = GENERAL + index * 8;
        machine[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    CrashContext::from_bytes(thread, &siginfo, &machine).map_err(io::Error::other)
}
