//! What Toolhelp and process handles tell about a process and its threads without disturbing them.

use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};

use windows_sys::Win32::Foundation::{FILETIME, HANDLE, INVALID_HANDLE_VALUE, LocalFree, WAIT_OBJECT_0};
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, PROCESSENTRY32W, Process32FirstW, Process32NextW, TH32CS_SNAPPROCESS,
    TH32CS_SNAPTHREAD, THREADENTRY32, Thread32First, Thread32Next,
};
use windows_sys::Win32::System::Threading::{
    GetCurrentThread, GetProcessTimes, GetThreadDescription, GetThreadTimes, OpenProcess, OpenThread,
    PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SYNCHRONIZE, THREAD_QUERY_LIMITED_INFORMATION,
    WaitForSingleObject,
};

use crate::identity::{ProcessId, ThreadId};

/// A handle that the system gave us to own; none for the two ways in which it says no.
pub(super) fn own(handle: HANDLE) -> io::Result<OwnedHandle> {
    if handle.is_null() || handle == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: every caller passes the fresh result of a call that opens a handle.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}

/// A handle good for asking and waiting. While it is open the number is not given to another process.
pub(super) fn open_process(pid: ProcessId) -> io::Result<OwnedHandle> {
    // SAFETY: returns a new handle or null.
    own(unsafe { OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_SYNCHRONIZE, 0, pid.0) })
}

/// Whether what the handle stands for (a process, a thread) has ended.
pub(super) fn is_over(handle: &OwnedHandle) -> bool {
    // SAFETY: the handle is open; a wait of no time returns at once.
    unsafe { WaitForSingleObject(handle.as_raw_handle(), 0) == WAIT_OBJECT_0 }
}

/// A process whose end is looked for again and again.
#[derive(Debug)]
pub(crate) struct Life(Option<OwnedHandle>);

impl Life {
    /// Of this process.
    pub(crate) fn of(pid: ProcessId) -> Life {
        Life(open_process(pid).ok())
    }

    /// Whether the process is gone.
    pub(crate) fn has_ended(&self) -> bool {
        self.0.as_ref().is_none_or(is_over)
    }
}

/// How long the calling thread was on a processor.
pub(crate) fn own_processor_time() -> std::time::Duration {
    let mut times = [FILETIME::default(); 4];
    let [created, exited, kernel, user] = &mut times;
    // SAFETY: the number stands for the calling thread; four valid places for the answers.
    unsafe { GetThreadTimes(GetCurrentThread(), created, exited, kernel, user) };
    let units = |time: &FILETIME| u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
    std::time::Duration::from_nanos((units(kernel) + units(user)) * 100)
}

/// Whether a process is gone.
pub(super) fn has_ended(pid: ProcessId) -> bool {
    open_process(pid).map_or(true, |process| is_over(&process))
}

/// The thread ids the system lists; none if the process is gone. The snapshot is of the whole machine.
pub(crate) fn threads_of(pid: ProcessId) -> Vec<ThreadId> {
    // SAFETY: returns a new handle or an invalid one.
    let Ok(snapshot) = own(unsafe { CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0) }) else {
        return Vec::new();
    };
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
    found
}

/// A thread's name, empty when it was given none; none if it is gone.
pub(crate) fn thread_name(_pid: ProcessId, thread: ThreadId) -> Option<String> {
    // SAFETY: returns a new handle or null.
    let handle = own(unsafe { OpenThread(THREAD_QUERY_LIMITED_INFORMATION, 0, thread.0) }).ok()?;
    let mut text = std::ptr::null_mut();
    // SAFETY: on success the system hands over a NUL-terminated string, which we free once.
    unsafe {
        if GetThreadDescription(handle.as_raw_handle(), &mut text) < 0 || text.is_null() {
            return Some(String::new());
        }
        let length = (0..).take_while(|at| *text.add(*at) != 0).count();
        let name = String::from_utf16_lossy(std::slice::from_raw_parts(text, length));
        LocalFree(text.cast());
        Some(name)
    }
}

/// A process, the one that started it, and its name.
struct Listed {
    pid: ProcessId,
    parent: ProcessId,
    name: String,
}

fn processes() -> Vec<Listed> {
    // SAFETY: returns a new handle or an invalid one.
    let Ok(snapshot) = own(unsafe { CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0) }) else {
        return Vec::new();
    };
    let mut entry =
        PROCESSENTRY32W { dwSize: size_of::<PROCESSENTRY32W>() as u32, ..PROCESSENTRY32W::default() };
    let mut found = Vec::new();
    // SAFETY: the entry says its own size and lives across the calls.
    let mut more = unsafe { Process32FirstW(snapshot.as_raw_handle(), &mut entry) } != 0;
    while more {
        let length = entry.szExeFile.iter().position(|unit| *unit == 0).unwrap_or(entry.szExeFile.len());
        found.push(Listed {
            pid: ProcessId(entry.th32ProcessID),
            parent: ProcessId(entry.th32ParentProcessID),
            name: String::from_utf16_lossy(&entry.szExeFile[..length]),
        });
        // SAFETY: as above.
        more = unsafe { Process32NextW(snapshot.as_raw_handle(), &mut entry) } != 0;
    }
    found
}

/// Our ancestors, parent first, with their names. The number of a parent that is gone may be another's by now, so
/// whoever is younger than its child is none.
pub(super) fn ancestors() -> Vec<(ProcessId, String)> {
    let all = processes();
    let mut found: Vec<(ProcessId, String)> = Vec::new();
    let mut child = ProcessId(std::process::id());
    while let Some(parent) = all.iter().find(|one| one.pid == child).map(|one| one.parent)
        && parent.0 != 0
        && let Some(listed) = all.iter().find(|one| one.pid == parent)
        && !found.iter().any(|(pid, _)| *pid == parent)
        && started_at(parent).zip(started_at(child)).is_none_or(|(parent, child)| parent <= child)
    {
        found.push((parent, listed.name.clone()));
        child = parent;
    }
    found
}

fn started_at(pid: ProcessId) -> Option<u64> {
    let process = open_process(pid).ok()?;
    let mut times = [FILETIME::default(); 4];
    let [created, exited, kernel, user] = &mut times;
    // SAFETY: four valid places for the answers.
    let done = unsafe { GetProcessTimes(process.as_raw_handle(), created, exited, kernel, user) };
    (done != 0).then(|| u64::from(created.dwHighDateTime) << 32 | u64::from(created.dwLowDateTime))
}

#[cfg(test)]
mod tests {
    use super::*;
    use windows_sys::Win32::System::Threading::GetCurrentThreadId;

    #[test]
    fn our_own_threads_are_listed() {
        let pid = ProcessId(std::process::id());
        // SAFETY: returns a number.
        let own = ThreadId(unsafe { GetCurrentThreadId() });
        assert!(threads_of(pid).contains(&own));
        assert!(thread_name(pid, own).is_some());
        assert!(!has_ended(pid));
    }

    #[test]
    fn a_process_that_never_was_has_nothing() {
        let nobody = ProcessId(0x3fff_fffc);
        assert!(threads_of(nobody).is_empty());
        assert!(has_ended(nobody));
    }
}
