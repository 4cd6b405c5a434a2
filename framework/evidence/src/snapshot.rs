//! What is copied from a process while it is stopped.
//!
//! The types say what is known of a thread; how it is got at is `sys`'s business.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::crash::CrashContext;
use crate::identity::{ProcessId, ThreadId};
use crate::memory_map::{MemoryMap, MemoryMapError};
use crate::registers::Registers;
use crate::sys;

/// How much to copy and how long to wait.
#[derive(Debug, Clone)]
pub struct CaptureOptions {
    /// Stack bytes copied per thread, from the innermost frame outwards. Deeper stacks lose their middle.
    pub stack_limit: usize,
    /// Stack bytes copied of threads in `crashed`: enough for the whole of an overflown stack.
    pub crash_stack_limit: usize,
    /// How long threads may take to stop; one that does not (uninterruptible sleep) is reported unstopped.
    pub stop_timeout: Duration,
    /// Threads that are in a signal handler, with the registers the handler was given.
    pub crashed: Vec<CrashContext>,
}

impl Default for CaptureOptions {
    fn default() -> Self {
        CaptureOptions {
            // Stacks of blocked threads are mostly below 16 KiB; 64 threads copy within a few milliseconds.
            stack_limit: 256 << 10,
            // The usual thread stack is 2 or 8 MiB.
            crash_stack_limit: 16 << 20,
            // With 16 spinning threads on 2 cores the last one needs up to 30 ms to reach its stop.
            stop_timeout: Duration::from_millis(500),
            crashed: Vec::new(),
        }
    }
}

/// What the scheduler thought of a thread just before it was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SchedulerState {
    /// On a processor or waiting for one.
    Running,
    /// Waiting, can be woken by a signal.
    Sleeping,
    /// Waiting inside the kernel, cannot be woken.
    Uninterruptible,
    /// Stopped by job control or a debugger.
    Stopped,
    /// Anything else, or not known.
    Other,
}

/// A system call a thread is in.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Syscall {
    /// The kernel's number.
    pub number: u64,
    /// Its name, if it is one that waits.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// Its arguments.
    pub arguments: [u64; 6],
}

/// What a thread waits for, as far as its system call tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    /// Not in a call that waits.
    No,
    /// For another thread (futex), for ever.
    ThreadUntimed,
    /// For another thread, with a timeout.
    ThreadTimed,
    /// For time to pass.
    Sleep,
    /// For a file, socket, signal or child, for ever.
    InputUntimed,
    /// For a file, socket or signal, with a timeout.
    InputTimed,
}

/// Where a thread's registers come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadContext {
    /// Read while the thread was stopped.
    Stopped(Registers),
    /// What the signal handler was given: the state at the crash.
    Crashed(Registers),
    /// The thread did not stop in time; the kernel told only position and stack.
    Unstopped(Registers),
    /// Nothing could be learned.
    Unknown,
}

/// Copied stack memory of one thread: the innermost part and, if that is not all, the outermost; also the
/// stack a signal handler interrupted.
#[derive(Debug, Clone, Default)]
pub struct StackMemory {
    regions: Vec<(u64, Vec<u8>)>,
}

/// One thread of a [`ProcessSnapshot`].
#[derive(Debug, Clone)]
pub struct ThreadSnapshot {
    /// The thread.
    pub id: ThreadId,
    /// Its name.
    pub name: String,
    /// What the scheduler thought of it.
    pub state: SchedulerState,
    /// The system call it was in.
    pub syscall: Option<Syscall>,
    /// Whether that call waits, and for how long it may.
    pub wait: Wait,
    /// Where in the kernel it waited, if the kernel tells.
    pub wait_channel: Option<String>,
    /// Processor time used so far.
    pub cpu: Duration,
    /// How often it was put on a processor.
    pub wakeups: u64,
    /// Its registers.
    pub context: ThreadContext,
    /// Its stack.
    pub stack: StackMemory,
}

/// A process as it was at one moment.
#[derive(Debug, Clone)]
pub struct ProcessSnapshot {
    /// The process.
    pub pid: ProcessId,
    /// Its threads: crashed ones first, then in order of creation.
    pub threads: Vec<ThreadSnapshot>,
    /// Its memory map.
    pub map: MemoryMap,
    /// From the first request to stop until the last thread was let go.
    pub stopped_for: Duration,
    /// The whole capture.
    pub took: Duration,
}

/// Who traces a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tracer {
    /// The tracing process or thread.
    pub pid: ProcessId,
    /// Its name.
    pub name: String,
}

impl std::fmt::Display for Tracer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (pid {})", self.name, self.pid)
    }
}

/// Why a process could not be looked at.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// The process has ended, before or while it was looked at.
    #[error("process {pid} has ended")]
    Gone {
        /// The process.
        pid: ProcessId,
    },
    /// Linux allows one tracer per thread, and there is one.
    #[error(
        "thread {thread} of process {pid} is already traced by {tracer}: let it detach first{}",
        scope_hint(.scope)
    )]
    Traced {
        /// The process.
        pid: ProcessId,
        /// The thread that is traced.
        thread: ThreadId,
        /// By whom.
        tracer: Tracer,
        /// `kernel.yama.ptrace_scope`, if the kernel has it.
        scope: Option<u32>,
    },
    /// The kernel forbids tracing the process.
    #[error(
        "not allowed to trace thread {thread} of process {pid}{}: run as the same user, as its parent, or \
         let it call prctl(PR_SET_PTRACER)",
        scope_hint(.scope)
    )]
    Denied {
        /// The process.
        pid: ProcessId,
        /// The thread that could not be traced.
        thread: ThreadId,
        /// `kernel.yama.ptrace_scope`, if the kernel has it.
        scope: Option<u32>,
    },
    /// The memory map could not be read.
    #[error(transparent)]
    Map(#[from] MemoryMapError),
    /// Something else the kernel refused.
    #[error("cannot {action} process {pid}: {source}")]
    Kernel {
        /// What was tried.
        action: &'static str,
        /// The process.
        pid: ProcessId,
        /// What the kernel said.
        source: std::io::Error,
    },
}

fn scope_hint(scope: &Option<u32>) -> String {
    match scope {
        Some(scope) => format!(" (kernel.yama.ptrace_scope = {scope})"),
        None => String::new(),
    }
}

/// Stops every thread of a process, copies registers and stacks, and lets the process go on.
///
/// The process is stopped for a few milliseconds. Whatever happens inside, no thread stays stopped: each is
/// held by a guard, and all guards belong to a thread that ends with this call.
pub fn capture(pid: ProcessId, options: &CaptureOptions) -> Result<ProcessSnapshot, CaptureError> {
    sys::capture(pid, options)
}

/// A process that stands still as a whole: no thread runs, starts or ends until this is dropped or a dump of the process
/// was written, whichever comes first.
#[derive(Debug)]
pub struct Standstill {
    since: Instant,
    _stop: sys::Standstill,
}

impl Standstill {
    /// How long it has lasted.
    #[must_use]
    pub fn lasts(&self) -> Duration {
        self.since.elapsed()
    }
}

/// Takes the same snapshot as [`capture`] and leaves the process standing still, so that a dump that is written next shows
/// the same threads at the same places.
pub fn capture_and_hold(
    pid: ProcessId,
    options: &CaptureOptions,
) -> Result<(ProcessSnapshot, Standstill), CaptureError> {
    let since = Instant::now();
    let (snapshot, stop) = sys::capture_and_hold(pid, options)?;
    Ok((snapshot, Standstill { since, _stop: stop }))
}

impl StackMemory {
    /// Adds a copied range.
    pub(crate) fn add(&mut self, start: u64, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            self.regions.push((start, bytes));
        }
    }

    /// Whether an address was copied.
    #[must_use]
    pub fn contains(&self, address: u64) -> bool {
        self.regions.iter().any(|(start, bytes)| (*start..*start + bytes.len() as u64).contains(&address))
    }

    /// The word at an address.
    #[must_use]
    pub fn word(&self, address: u64) -> Option<u64> {
        self.regions.iter().find_map(|(start, bytes)| {
            let offset = usize::try_from(address.checked_sub(*start)?).ok()?;
            let word = bytes.get(offset..offset.checked_add(8)?)?;
            Some(u64::from_le_bytes(word.try_into().ok()?))
        })
    }

    /// Address and length of each copied range, in the order copied.
    pub fn regions(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.regions.iter().map(|(start, bytes)| (*start, bytes.as_slice()))
    }
}

impl ThreadContext {
    /// The registers, whatever their origin.
    #[must_use]
    pub fn registers(&self) -> Option<Registers> {
        match self {
            ThreadContext::Stopped(registers)
            | ThreadContext::Crashed(registers)
            | ThreadContext::Unstopped(registers) => Some(*registers),
            ThreadContext::Unknown => None,
        }
    }
}

impl ThreadSnapshot {
    /// Whether a fatal signal hit this thread.
    #[must_use]
    pub fn crashed(&self) -> bool {
        matches!(self.context, ThreadContext::Crashed(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_only_inside_a_region() {
        let mut memory = StackMemory::default();
        memory.add(0x1000, (0..16).collect());
        assert_eq!(memory.word(0x1000), Some(0x0706_0504_0302_0100));
        assert_eq!(memory.word(0x1008), Some(0x0f0e_0d0c_0b0a_0908));
        assert_eq!(memory.word(0x1009), None);
        assert_eq!(memory.word(0xff8), None);
        assert_eq!(memory.word(u64::MAX), None);
    }

    #[test]
    fn a_second_tracer_is_named() {
        let error = CaptureError::Traced {
            pid: ProcessId(10),
            thread: ThreadId(11),
            tracer: Tracer { pid: ProcessId(7), name: "gdb".into() },
            scope: Some(1),
        };
        assert_eq!(
            error.to_string(),
            "thread 11 of process 10 is already traced by gdb (pid 7): let it detach first \
             (kernel.yama.ptrace_scope = 1)"
        );
    }
}
