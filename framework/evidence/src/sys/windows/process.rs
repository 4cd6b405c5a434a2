//! What Toolhelp tells about a process: its threads and modules.

use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};

use windows_sys::Win32::Foundation::{ERROR_BAD_LENGTH, HANDLE, INVALID_HANDLE_VALUE, WAIT_OBJECT_0};
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CREATE_TOOLHELP_SNAPSHOT_FLAGS, CreateToolhelp32Snapshot, MODULEENTRY32W, Module32FirstW, Module32NextW,
    TH32CS_SNAPMODULE, TH32CS_SNAPTHREAD, THREADENTRY32, Thread32First, Thread32Next,
};
use windows_sys::Win32::System::Threading::{
    OpenProcess, PROCESS_QUERY_INFORMATION, PROCESS_SYNCHRONIZE, PROCESS_VM_READ, WaitForSingleObject,
};

use crate::identity::{ProcessId, ThreadId};
use crate::snapshot::Tracer;

/// Snapshots of modules fail while a module is being loaded; after this many the loader is taken to be stuck.
const MOST_TRIES: usize = 50;

/// A handle that the system gave us to own.
pub(super) fn own(handle: HANDLE) -> io::Result<OwnedHandle> {
    if handle.is_null() || handle == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: every caller passes the fresh result of a call that opens a handle.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}

/// A handle by which a living process can be read.
pub(super) fn open(pid: ProcessId) -> io::Result<OwnedHandle> {
    let rights = PROCESS_QUERY_INFORMATION | PROCESS_VM_READ | PROCESS_SYNCHRONIZE;
    // SAFETY: returns a new handle or null.
    let process = own(unsafe { OpenProcess(rights, 0, pid.0) })?;
    // SAFETY: the handle is open; a wait of no time returns at once.
    if unsafe { WaitForSingleObject(process.as_raw_handle(), 0) } == WAIT_OBJECT_0 {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the process has ended"));
    }
    Ok(process)
}

fn snapshot(flags: CREATE_TOOLHELP_SNAPSHOT_FLAGS, pid: ProcessId) -> io::Result<OwnedHandle> {
    for _ in 1..MOST_TRIES {
        // SAFETY: returns a new handle or an invalid one.
        match own(unsafe { CreateToolhelp32Snapshot(flags, pid.0) }) {
            Err(error) if error.raw_os_error() == Some(ERROR_BAD_LENGTH as i32) => {}
            result => return result,
        }
    }
    Err(io::Error::other("the process loads modules without end"))
}

/// The threads of a process, in order of their numbers; none if it is gone.
pub(crate) fn threads_of(pid: ProcessId) -> Vec<ThreadId> {
    if open(pid).is_err() {
        return Vec::new();
    }
    let Ok(snapshot) = snapshot(TH32CS_SNAPTHREAD, ProcessId(0)) else { return Vec::new() };
    let mut entry = THREADENTRY32 { dwSize: size_of::<THREADENTRY32>() as u32, ..THREADENTRY32::default() };
    let mut found = Vec::new();
    // SAFETY: the entry says its own size and lives across the calls.
    let mut more = unsafe { Thread32First(snapshot.as_raw_handle(), &mut entry) } != 0;
    while more {
        if entry.th32OwnerProcessID == pid.0 {
            found.push(ThreadId(entry.th32ThreadID));
        }
        // SAFETY: as above.
        more = unsafe { Thread32Next(snapshot.as_raw_handle(), &mut entry) } != 0;
    }
    found.sort_unstable();
    found
}

/// Suspend counts add up, so nobody who suspends a thread stands in another's way.
pub(crate) fn tracer_of(_pid: ProcessId, _thread: ThreadId) -> Option<Tracer> {
    None
}

/// A loaded module.
pub(super) struct LoadedFile {
    pub(super) base: u64,
    pub(super) size: u64,
    pub(super) path: String,
}

/// The modules of a process.
pub(super) fn modules_of(pid: ProcessId) -> io::Result<Vec<LoadedFile>> {
    let snapshot = snapshot(TH32CS_SNAPMODULE, pid)?;
    let mut entry =
        MODULEENTRY32W { dwSize: size_of::<MODULEENTRY32W>() as u32, ..MODULEENTRY32W::default() };
    let mut found = Vec::new();
    // SAFETY: the entry says its own size and lives across the calls.
    let mut more = unsafe { Module32FirstW(snapshot.as_raw_handle(), &mut entry) } != 0;
    while more {
        let length = entry.szExePath.iter().position(|unit| *unit == 0).unwrap_or(entry.szExePath.len());
        found.push(LoadedFile {
            base: entry.modBaseAddr as u64,
            size: u64::from(entry.modBaseSize),
            path: String::from_utf16_lossy(&entry.szExePath[..length]),
        });
        // SAFETY: as above.
        more = unsafe { Module32NextW(snapshot.as_raw_handle(), &mut entry) } != 0;
    }
    Ok(found)
}
