//! Stopping a whole process and copying it.
//!
//! Threads are created while others are being stopped, so the list is read again until it brings nothing
//! new. All are asked first and collected afterwards: a running thread reaches its stop only when it is
//! scheduled, and those waits overlap. Everything slow (names, files, unwinding) happens before or after.

use std::collections::{HashMap, HashSet};
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use crate::crash::{CrashContext, GREGS_OFFSET};
use crate::identity::{ProcessId, ThreadId};
use crate::memory_map::{Mapping, MemoryMap, MemoryMapError};
use crate::registers::Registers;
use crate::snapshot::{
    CaptureError, CaptureOptions, ProcessSnapshot, StackMemory, ThreadContext, ThreadSnapshot, Wait,
};

use super::memory::read_available;
use super::procfs::{self, Activity};
use super::standstill::Standstill;
use super::tracee::{Poll, Position, Seized, Stopped};
use super::waits;

/// First and longest pause between two looks at threads that have not stopped yet.
const FIRST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_micros(500);
/// Bytes below the stack pointer that a leaf function may use (System V ABI), and that a half-finished
/// epilogue has just popped.
const RED_ZONE: u64 = 128;
/// Copied from the outer end of a stack whose middle is left out.
const OUTER_PART: u64 = 32 << 10;
/// How many stacks interrupted by signals are followed per thread.
const MAX_INTERRUPTED: usize = 4;

/// Takes a snapshot of a process.
pub(crate) fn capture(pid: ProcessId, options: &CaptureOptions) -> Result<ProcessSnapshot, CaptureError> {
    on_tracing_thread(pid, || trace(pid, options, || ())).map(|(snapshot, ())| snapshot)
}

/// Takes a snapshot of a process and leaves it standing still.
pub(crate) fn capture_and_hold(
    pid: ProcessId,
    options: &CaptureOptions,
) -> Result<(ProcessSnapshot, Standstill), CaptureError> {
    on_tracing_thread(pid, || trace(pid, options, || Standstill::begin(pid, options.stop_timeout)))
}

/// Tracing belongs to a thread and ends with it, so that nothing can stay traced.
pub(super) fn on_tracing_thread<T: Send>(
    pid: ProcessId,
    trace: impl FnOnce() -> Result<T, CaptureError> + Send,
) -> Result<T, CaptureError> {
    thread::scope(|scope| {
        let tracer = thread::Builder::new().name("waylay-capture".into()).spawn_scoped(scope, trace);
        match tracer {
            Ok(tracer) => tracer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(source) => Err(CaptureError::Kernel { action: "start a thread to trace", pid, source }),
        }
    })
}

/// `hold` is called when it is known what the threads were doing.
fn trace<H>(
    pid: ProcessId,
    options: &CaptureOptions,
    hold: impl FnOnce() -> H,
) -> Result<(ProcessSnapshot, H), CaptureError> {
    let began = Instant::now();
    let mut activities: HashMap<_, _> =
        procfs::task_ids(pid).filter_map(|thread| Some((thread, Activity::of(pid, thread)?))).collect();

    let stopping = Instant::now();
    let held = hold();
    let (stopped, unstopped) = stop_all(pid, options.stop_timeout, &mut activities)?;
    let text = procfs::memory_map_text(pid).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => CaptureError::Gone { pid },
        _ => MemoryMapError::Read { pid, source }.into(),
    })?;
    let ranges = crate::memory_map::parse_mappings(&text)?;
    let copies: Vec<_> = stopped
        .iter()
        .filter_map(|thread| Some((thread.thread(), copy_thread(pid, thread, &ranges, options)?)))
        .collect();
    drop(stopped);
    let stopped_for = stopping.elapsed();

    let mut threads: Vec<_> = copies
        .into_iter()
        .filter_map(|(thread, copy)| Some(describe(thread, activities.remove(&thread)?, copy)))
        .collect();
    for seized in &unstopped {
        let thread = seized.thread();
        if let Some(activity) = activities.remove(&thread) {
            threads.push(describe(thread, activity, copy_unstopped(pid, thread, &ranges, options)));
        }
    }
    if threads.is_empty() {
        return Err(CaptureError::Gone { pid });
    }
    threads.sort_by_key(|thread| (!thread.crashed(), thread.id));

    let map = MemoryMap::of(pid).or_else(|_| MemoryMap::parse(&text))?;
    Ok((ProcessSnapshot { pid, threads, map, stopped_for, took: began.elapsed() }, held))
}

/// Stops every thread, including those created meanwhile. Threads that end are forgotten; those that do not
/// stop in time come back as the second list.
pub(super) fn stop_all(
    pid: ProcessId,
    timeout: Duration,
    activities: &mut HashMap<ThreadId, Activity>,
) -> Result<(Vec<Stopped>, Vec<Seized>), CaptureError> {
    let deadline = Instant::now() + timeout;
    let mut seen = HashSet::new();
    let mut stopped = Vec::new();
    let mut waiting: Vec<Seized> = Vec::new();
    let mut pause = FIRST_PAUSE;
    loop {
        let mut found_new = false;
        for thread in procfs::task_ids(pid) {
            if !seen.insert(thread) {
                continue;
            }
            found_new = true;
            if !activities.contains_key(&thread)
                && let Some(activity) = Activity::of(pid, thread)
            {
                activities.insert(thread, activity);
            }
            match Seized::seize(thread) {
                Ok(seized) => waiting.push(seized),
                Err(error) => explain_refusal(pid, thread, error)?,
            }
        }
        if !found_new && waiting.is_empty() {
            return Ok((stopped, waiting));
        }
        let before = waiting.len();
        for seized in std::mem::take(&mut waiting) {
            match seized.poll() {
                Poll::Stopped(guard) => stopped.push(guard),
                Poll::Running(seized) => waiting.push(seized),
                Poll::Gone => {}
            }
        }
        let late = Instant::now() >= deadline;
        if !late && (waiting.len() < before || found_new) {
            pause = FIRST_PAUSE;
            continue;
        }
        waiting = waiting
            .into_iter()
            .filter_map(|seized| match seized.check_alive(pid) {
                Poll::Running(seized) => Some(seized),
                _ => None,
            })
            .collect();
        if late {
            return Ok((stopped, waiting));
        }
        thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// A refused attach is an error unless the thread has just ended.
fn explain_refusal(pid: ProcessId, thread: ThreadId, error: io::Error) -> Result<(), CaptureError> {
    if error.raw_os_error() == Some(libc::ESRCH) || !procfs::is_alive(pid, thread) {
        return Ok(());
    }
    if error.raw_os_error() != Some(libc::EPERM) {
        return Err(CaptureError::Kernel { action: "trace", pid, source: error });
    }
    let scope = procfs::ptrace_scope();
    Err(match procfs::tracer_of(pid, thread) {
        Some(tracer) => CaptureError::Traced { pid, thread, tracer, scope },
        None => CaptureError::Denied { pid, thread, scope },
    })
}

/// What was copied of one thread.
struct Copied {
    context: ThreadContext,
    stack: StackMemory,
    syscall: Option<(u64, [u64; 6])>,
}

/// Copies a stopped thread; nothing if it was killed inside its stop.
fn copy_thread(
    pid: ProcessId,
    thread: &Stopped,
    ranges: &[Mapping],
    options: &CaptureOptions,
) -> Option<Copied> {
    let Position { registers, thread_pointer, syscall } = thread.position().ok()?;
    let crash = options.crashed.iter().find(|crash| crash.thread == thread.thread());
    let limit = if crash.is_some() { options.crash_stack_limit } else { options.stack_limit };
    let (registers, context, syscall) = match crash.map(CrashContext::registers) {
        Some(registers) => (registers, ThreadContext::Crashed(registers), None),
        None => (registers, ThreadContext::Stopped(registers), syscall),
    };
    Some(Copied {
        context,
        stack: copy_stack(pid, registers.stack()?, thread_pointer, limit, ranges),
        syscall,
    })
}

/// What the kernel tells of a thread that did not stop. Its stack is read while it may change.
fn copy_unstopped(pid: ProcessId, thread: ThreadId, ranges: &[Mapping], options: &CaptureOptions) -> Copied {
    match procfs::syscall_line(pid, thread) {
        Some(line) => Copied {
            context: ThreadContext::Unstopped(Registers::position(line.instruction, line.stack)),
            stack: copy_stack(pid, line.stack, 0, options.stack_limit, ranges),
            syscall: line.number.map(|number| (number, line.arguments)),
        },
        None => Copied { context: ThreadContext::Unknown, stack: StackMemory::default(), syscall: None },
    }
}

fn describe(id: ThreadId, activity: Activity, copied: Copied) -> ThreadSnapshot {
    let (syscall, wait) = match copied.syscall {
        Some((number, arguments)) => {
            let (syscall, wait) = waits::describe(number, arguments);
            (Some(syscall), wait)
        }
        None => (None, Wait::No),
    };
    ThreadSnapshot {
        id,
        name: activity.name,
        state: activity.state,
        syscall,
        wait,
        wait_channel: activity.wait_channel,
        cpu: activity.cpu,
        wakeups: activity.wakeups,
        context: copied.context,
        stack: copied.stack,
    }
}

/// Copies the stack at `pointer` and the stacks that signal handlers on it have interrupted.
fn copy_stack(
    pid: ProcessId,
    pointer: u64,
    thread_pointer: u64,
    limit: usize,
    ranges: &[Mapping],
) -> StackMemory {
    let mut memory = StackMemory::default();
    copy_part(pid, pointer, thread_pointer, limit, ranges, &mut memory);
    for _ in 0..MAX_INTERRUPTED {
        let interrupted = memory
            .regions()
            .flat_map(|(start, bytes)| interrupted_stacks(start, bytes))
            .find(|pointer| !memory.contains(*pointer) && readable(ranges, *pointer));
        match interrupted {
            Some(pointer) => copy_part(pid, pointer, thread_pointer, limit, ranges, &mut memory),
            None => break,
        }
    }
    memory
}

fn readable(ranges: &[Mapping], address: u64) -> bool {
    ranges.iter().any(|range| range.readable && range.writable && (range.start..range.end).contains(&address))
}

fn copy_part(
    pid: ProcessId,
    pointer: u64,
    thread_pointer: u64,
    limit: usize,
    ranges: &[Mapping],
    memory: &mut StackMemory,
) {
    // An overflown stack's pointer is in the guard page; what can be read begins above it.
    let Some(range) = ranges.iter().find(|range| range.end > pointer && range.readable && range.writable)
    else {
        return;
    };
    let start = pointer.saturating_sub(RED_ZONE).max(range.start);
    let end = if (start..range.end).contains(&thread_pointer) { thread_pointer } else { range.end };
    let inner_end = end.min(start.saturating_add(limit as u64));
    for (from, to) in [(start, inner_end), (inner_end.max(end.saturating_sub(OUTER_PART)), end)] {
        if from < to
            && let Ok(bytes) = read_available(pid, from, (to - from) as usize)
        {
            memory.add(from, bytes);
        }
    }
}

/// Stack pointers saved in signal frames. A signal frame is told by the segment selectors that the kernel
/// stores among the registers: user code (0x33) and user stack (0x2b), a pattern that nothing else has.
fn interrupted_stacks(start: u64, bytes: &[u8]) -> impl Iterator<Item = u64> {
    const SELECTORS: u64 = 0x002b_0000_0000_0033;
    const SELECTORS_INDEX: usize = 18;
    const STACK_INDEX: usize = 15;
    let aligned = (start.next_multiple_of(8) - start) as usize;
    let words = bytes.get(aligned..).unwrap_or_default();
    words.chunks_exact(8).enumerate().filter_map(move |(index, word)| {
        let back = (SELECTORS_INDEX - STACK_INDEX) * 8;
        let offset = index * 8;
        if u64::from_le_bytes(word.try_into().ok()?) != SELECTORS
            || offset < GREGS_OFFSET + SELECTORS_INDEX * 8
        {
            return None;
        }
        Some(u64::from_le_bytes(words.get(offset - back..offset - back + 8)?.try_into().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_frame_tells_the_interrupted_stack() {
        let mut bytes = vec![0; 1024];
        let frame = 256;
        let at = |index: usize| frame + GREGS_OFFSET + index * 8;
        bytes[at(15)..at(15) + 8].copy_from_slice(&0x7fff_1234_5678_u64.to_le_bytes());
        bytes[at(18)..at(18) + 8].copy_from_slice(&0x002b_0000_0000_0033_u64.to_le_bytes());
        assert_eq!(interrupted_stacks(0x1000, &bytes).collect::<Vec<_>>(), [0x7fff_1234_5678]);
        assert_eq!(interrupted_stacks(0x1000, &bytes[..256]).count(), 0);
    }

    #[test]
    fn a_process_that_never_was_is_gone() {
        let error = capture(ProcessId(0x3fff_fffe), &CaptureOptions::default()).expect_err("no such process");
        assert!(matches!(error, CaptureError::Gone { .. }), "{error}");
    }
}
