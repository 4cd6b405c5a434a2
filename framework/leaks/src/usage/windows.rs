//! Windows: working set, handle count, and the threads of a Toolhelp snapshot.
//!
//! Handles have no names that could be read from outside without risk (asking a pipe for its name may block for ever),
//! so they are only counted. Wine 8 answers 0 handles for every process.

use super::{Descriptor, ThreadId, UsageError};
use std::collections::BTreeMap;
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use windows_sys::Win32::Foundation::{
    ERROR_INVALID_PARAMETER, HANDLE, INVALID_HANDLE_VALUE, LocalFree, STILL_ACTIVE,
};
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, TH32CS_SNAPTHREAD, THREADENTRY32, Thread32First, Thread32Next,
};
use windows_sys::Win32::System::ProcessStatus::{K32GetProcessMemoryInfo, PROCESS_MEMORY_COUNTERS};
use windows_sys::Win32::System::Threading::{
    GetExitCodeProcess, GetProcessHandleCount, GetThreadDescription, OpenProcess, OpenThread,
    PROCESS_QUERY_INFORMATION, PROCESS_VM_READ, THREAD_QUERY_LIMITED_INFORMATION,
};

pub(super) fn resident(pid: u32) -> Result<u64, UsageError> {
    let process = open(pid, "memory size")?;
    let mut counters = PROCESS_MEMORY_COUNTERS {
        cb: size_of::<PROCESS_MEMORY_COUNTERS>() as u32,
        ..PROCESS_MEMORY_COUNTERS::default()
    };
    // SAFETY: the structure says its own size and lives across the call.
    let done = unsafe { K32GetProcessMemoryInfo(process.as_raw_handle(), &mut counters, counters.cb) };
    if done == 0 { Err(unreadable(pid, "memory size")) } else { Ok(counters.WorkingSetSize as u64) }
}

pub(super) fn descriptor_count(pid: u32) -> Result<u64, UsageError> {
    let process = open(pid, "open handles")?;
    let mut count = 0;
    // SAFETY: `count` is a valid place for the answer.
    let done = unsafe { GetProcessHandleCount(process.as_raw_handle(), &mut count) };
    if done == 0 { Err(unreadable(pid, "open handles")) } else { Ok(u64::from(count)) }
}

pub(super) fn descriptors(pid: u32) -> Result<(u64, BTreeMap<Descriptor, String>), UsageError> {
    Ok((descriptor_count(pid)?, BTreeMap::new()))
}

pub(super) fn thread_count(pid: u32) -> Result<u64, UsageError> {
    open(pid, "threads")?;
    Ok(thread_ids(pid)?.len() as u64)
}

pub(super) fn threads(pid: u32) -> Result<BTreeMap<ThreadId, String>, UsageError> {
    open(pid, "threads")?;
    Ok(thread_ids(pid)?.into_iter().map(|id| (ThreadId(id), thread_name(id))).collect())
}

/// A handle to a process that has not ended.
fn open(pid: u32, what: &'static str) -> Result<OwnedHandle, UsageError> {
    // SAFETY: returns a new handle or null.
    let handle = unsafe { OpenProcess(PROCESS_QUERY_INFORMATION | PROCESS_VM_READ, 0, pid) };
    if handle.is_null() {
        let source = io::Error::last_os_error();
        let gone = source.raw_os_error() == Some(ERROR_INVALID_PARAMETER as i32);
        return Err(if gone {
            UsageError::Gone { pid }
        } else {
            UsageError::Unreadable { pid, what, source }
        });
    }
    // SAFETY: just opened, owned by nobody else.
    let process = unsafe { OwnedHandle::from_raw_handle(handle) };
    let mut code = 0;
    // SAFETY: `code` is a valid place for the answer.
    let ended = unsafe { GetExitCodeProcess(handle, &mut code) } != 0 && code != STILL_ACTIVE as u32;
    if ended { Err(UsageError::Gone { pid }) } else { Ok(process) }
}

fn unreadable(pid: u32, what: &'static str) -> UsageError {
    UsageError::Unreadable { pid, what, source: io::Error::last_os_error() }
}

fn thread_ids(pid: u32) -> Result<Vec<u32>, UsageError> {
    // SAFETY: returns a new handle, or the invalid one.
    let snapshot: HANDLE = unsafe { CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0) };
    if snapshot == INVALID_HANDLE_VALUE {
        return Err(unreadable(pid, "threads"));
    }
    // SAFETY: just made, owned by nobody else.
    let snapshot = unsafe { OwnedHandle::from_raw_handle(snapshot) };
    let mut entry = THREADENTRY32 { dwSize: size_of::<THREADENTRY32>() as u32, ..THREADENTRY32::default() };
    let mut ids = Vec::new();
    // SAFETY: the entry says its own size and lives across the calls.
    let mut more = unsafe { Thread32First(snapshot.as_raw_handle(), &mut entry) } != 0;
    while more {
        if entry.th32OwnerProcessID == pid {
            ids.push(entry.th32ThreadID);
        }
        // SAFETY: as above.
        more = unsafe { Thread32Next(snapshot.as_raw_handle(), &mut entry) } != 0;
    }
    Ok(ids)
}

/// What the thread was named; empty when it has no name.
fn thread_name(id: u32) -> String {
    // SAFETY: returns a new handle or null; null is refused by the call after it.
    let handle = unsafe { OpenThread(THREAD_QUERY_LIMITED_INFORMATION, 0, id) };
    if handle.is_null() {
        return String::new();
    }
    // SAFETY: just opened, owned by nobody else.
    let thread = unsafe { OwnedHandle::from_raw_handle(handle) };
    let mut text = std::ptr::null_mut();
    // SAFETY: on success the system hands over a NUL-terminated string, which we free once.
    unsafe {
        if GetThreadDescription(thread.as_raw_handle(), &mut text) < 0 || text.is_null() {
            return String::new();
        }
        let length = (0..).take_while(|at| *text.add(*at) != 0).count();
        let name = String::from_utf16_lossy(std::slice::from_raw_parts(text, length));
        LocalFree(text.cast());
        name
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ProcessUsage, UsageCounts, UsageError};
    use std::sync::mpsc;

    #[test]
    fn a_thread_is_named_and_counted() {
        let own = std::process::id();
        let before = UsageCounts::read(own).expect("own process").threads;
        let (stop, stopped) = mpsc::channel::<()>();
        let (started, running) = mpsc::channel();
        let thread = std::thread::Builder::new().name("left-behind".into()).spawn(move || {
            started.send(()).expect("parent waits");
            let _ = stopped.recv();
        });
        running.recv().expect("started");
        let usage = ProcessUsage::read(own).expect("own process");
        assert!(usage.threads.values().any(|name| name == "left-behind"), "{:?}", usage.threads);
        assert!(usage.threads.len() as u64 > before.min(1), "{before} then {:?}", usage.threads);
        drop(stop);
        thread.expect("thread").join().expect("no panic");
    }

    #[test]
    fn resident_memory_is_counted_in_bytes() {
        let before = UsageCounts::read(std::process::id()).expect("own process").resident;
        // Other tests of this process free what they have meanwhile: some 50 MiB.
        let block = vec![1u8; 512 << 20];
        let after = UsageCounts::read(std::process::id()).expect("own process").resident;
        assert!(block.iter().step_by(4096).all(|byte| *byte == 1));
        assert!(after >= before + (256 << 20), "{before} then {after}");
    }

    #[test]
    fn a_process_that_never_was_is_gone() {
        assert!(matches!(UsageCounts::read(0x7fff_fff0), Err(UsageError::Gone { .. })));
    }
}
