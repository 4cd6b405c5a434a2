//! Stopping a whole process and copying it.
//!
//! Threads are created while others are being stopped, so the list is read again until it brings nothing new. All are
//! asked first and read afterwards. Names, files and unwinding come before or after.

use std::collections::HashMap;
use std::io;
use std::os::windows::io::OwnedHandle;
use std::time::Instant;

use windows_sys::Win32::Foundation::ERROR_ACCESS_DENIED;

use crate::crash::CrashContext;
use crate::identity::{ProcessId, ThreadId};
use crate::memory_map::MemoryMap;
use crate::snapshot::{
    CaptureError, CaptureOptions, ProcessSnapshot, SchedulerState, StackMemory, ThreadContext,
    ThreadSnapshot, Wait,
};

use super::memory::{read_through, readable_from};
use super::process::{modules_of, open, threads_of};
use super::stopped::{Stopped, Thread, registers};
use super::waits::Waits;

/// Copied from the outer end of a stack whose middle is left out.
const OUTER_PART: u64 = 32 << 10;

/// A process that stands still until this is dropped. Suspensions are counted, so that whoever suspends and resumes its
/// threads meanwhile changes nothing.
pub(crate) struct Standstill {
    _threads: HashMap<ThreadId, Stopped>,
}

impl std::fmt::Debug for Standstill {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} threads stand still", self._threads.len())
    }
}

/// Takes a snapshot of a process.
pub(crate) fn capture(pid: ProcessId, options: &CaptureOptions) -> Result<ProcessSnapshot, CaptureError> {
    capture_and_hold(pid, options).map(|(snapshot, _)| snapshot)
}

/// Takes a snapshot of a process and leaves it standing still.
pub(crate) fn capture_and_hold(
    pid: ProcessId,
    options: &CaptureOptions,
) -> Result<(ProcessSnapshot, Standstill), CaptureError> {
    let began = Instant::now();
    let process = open(pid).map_err(|source| refusal(pid, source))?;
    // The loader may hold its lock in a thread that we stop, but reading its list from outside takes no lock.
    let map = MemoryMap::of(pid);
    let base = modules_of(pid).ok().and_then(|modules| {
        let named = |path: &str| path.to_ascii_lowercase().ends_with("\\ntdll.dll");
        modules.into_iter().find(|module| named(&module.path)).map(|module| module.base)
    });
    let waits = base.map(Waits::of);

    let stopping = Instant::now();
    let stopped = stop_all(pid);
    let mut threads: Vec<_> =
        stopped.values().filter_map(|thread| copy(&process, thread, waits.as_ref(), options)).collect();
    let stopped_for = stopping.elapsed();

    if threads.is_empty() {
        return Err(CaptureError::Gone { pid });
    }
    threads.sort_by_key(|thread| (!thread.crashed(), thread.id));
    let snapshot = ProcessSnapshot { pid, threads, map: map?, stopped_for, took: began.elapsed() };
    Ok((snapshot, Standstill { _threads: stopped }))
}

fn refusal(pid: ProcessId, source: io::Error) -> CaptureError {
    match source.raw_os_error().map(|code| code as u32) {
        Some(ERROR_ACCESS_DENIED) => CaptureError::Kernel { action: "open", pid, source },
        _ => CaptureError::Gone { pid },
    }
}

/// Suspends every thread, including those created meanwhile. Threads that end are forgotten.
pub(super) fn stop_all(pid: ProcessId) -> HashMap<ThreadId, Stopped> {
    let mut stopped = HashMap::new();
    loop {
        let mut found_new = false;
        for id in threads_of(pid) {
            if stopped.contains_key(&id) {
                continue;
            }
            // One that ended between the list and here can be neither opened nor suspended.
            if let Ok(thread) = Thread::open(id).and_then(Thread::suspend) {
                stopped.insert(id, thread);
                found_new = true;
            }
        }
        if !found_new {
            return stopped;
        }
    }
}

fn copy(
    process: &OwnedHandle,
    thread: &Stopped,
    waits: Option<&Waits>,
    options: &CaptureOptions,
) -> Option<ThreadSnapshot> {
    let own = registers(&thread.context().ok()?.0);
    let id = thread.0.id;
    let crash = options.crashed.iter().find(|crash| crash.thread == id).map(CrashContext::registers);
    let limit = if crash.is_some() { options.crash_stack_limit } else { options.stack_limit };
    let used = crash.unwrap_or(own);
    let stack = copy_stack(process, used.stack()?, limit);
    let (syscall, wait) = match (crash, waits) {
        (None, Some(waits)) => waits.describe(&own, &stack),
        _ => (None, Wait::No),
    };
    Some(ThreadSnapshot {
        id,
        name: thread.0.name(),
        state: if wait == Wait::No { SchedulerState::Running } else { SchedulerState::Sleeping },
        syscall,
        wait,
        wait_channel: None,
        cpu: thread.0.cpu(),
        // The system does not say how often a thread was put on a processor.
        wakeups: 0,
        context: crash.map_or(ThreadContext::Stopped(own), ThreadContext::Crashed),
        stack,
    })
}

pub(super) fn copy_stack(process: &OwnedHandle, pointer: u64, limit: usize) -> StackMemory {
    let mut memory = StackMemory::default();
    let Some((start, end)) = readable_from(process, pointer) else { return memory };
    let inner_end = end.min(start.saturating_add(limit as u64));
    for (from, to) in [(start, inner_end), (inner_end.max(end.saturating_sub(OUTER_PART)), end)] {
        if from < to
            && let Ok(bytes) = read_through(process, from, (to - from) as usize)
        {
            memory.add(from, bytes);
        }
    }
    memory
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_never_was_is_gone() {
        let error = capture(ProcessId(0x3fff_fffc), &CaptureOptions::default()).expect_err("no such process");
        assert!(matches!(error, CaptureError::Gone { .. }), "{error}");
    }
}
