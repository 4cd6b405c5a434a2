//! What the tests need of Windows: processes and console events.

#![allow(dead_code)] // each test file is a crate of its own and uses its part

use std::ffi::c_void;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};

use windows_sys::Win32::Foundation::INVALID_HANDLE_VALUE;
use windows_sys::Win32::System::Console::CTRL_C_EVENT;
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, PROCESSENTRY32W, Process32FirstW, Process32NextW, TH32CS_SNAPPROCESS,
};
use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleA, GetProcAddress};
use windows_sys::Win32::System::Threading::{
    CreateRemoteThread, OpenProcess, PROCESS_ALL_ACCESS, PROCESS_TERMINATE, TerminateProcess,
};

/// There is no hang-up that a process could ignore.
pub(crate) fn forget_nohup(_command: &mut std::process::Command) {}

/// What Ctrl-C does.
pub(crate) fn ask_to_end(pid: i32) {
    console_event(pid as u32, CTRL_C_EVENT);
}

/// How the system is called in records.
pub(crate) const SYSTEM: &str = "windows";

/// The file that runs a failure again.
pub(crate) const REPLAY_SCRIPT: &str = "replay.cmd";

/// The debugger that people are told to attach.
pub(crate) const DEBUGGER: &str = "windbg";

/// How much `waylay doctor` looks at.
pub(crate) const DOCTOR_CHECKS: usize = 3;

/// What `waylay doctor` speaks of.
pub(crate) const DOCTOR_WORDS: [&str; 5] =
    ["system", "memory", "processors", "other processes", "C compiler"];

/// The file of a plugin.
pub(crate) fn file_of(plugin: &str) -> String {
    format!("{plugin}.dll")
}

/// Processes whose parent is `driver`: its hosts, where it has no randomizer.
pub(crate) fn hosts_of(driver: i32) -> Vec<i32> {
    let children = processes().into_iter().filter(|(_, parent)| *parent as i32 == driver);
    children.map(|(pid, _)| pid as i32).collect()
}

/// Whether there is such a process.
pub(crate) fn is_alive(pid: i32) -> bool {
    processes().iter().any(|(alive, _)| *alive as i32 == pid)
}

pub(crate) fn kill(pid: i32) {
    // SAFETY: the handle is checked before it is used, and closed by its owner.
    unsafe {
        let process = OpenProcess(PROCESS_TERMINATE, 0, pid as u32);
        if !process.is_null() {
            TerminateProcess(process, 1);
            drop(OwnedHandle::from_raw_handle(process));
        }
    }
}

/// All processes, with their parents.
pub(crate) fn processes() -> Vec<(u32, u32)> {
    // SAFETY: returns a new handle or an invalid one.
    let snapshot = unsafe { CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0) };
    assert_ne!(snapshot, INVALID_HANDLE_VALUE);
    // SAFETY: just made, owned by nobody else.
    let snapshot = unsafe { OwnedHandle::from_raw_handle(snapshot) };
    let mut entry = PROCESSENTRY32W { dwSize: size_of::<PROCESSENTRY32W>() as u32, ..Default::default() };
    let mut all = Vec::new();
    // SAFETY: the entry says its own size and lives across the calls.
    let mut more = unsafe { Process32FirstW(snapshot.as_raw_handle(), &mut entry) } != 0;
    while more {
        all.push((entry.th32ProcessID, entry.th32ParentProcessID));
        // SAFETY: as above.
        more = unsafe { Process32NextW(snapshot.as_raw_handle(), &mut entry) } != 0;
    }
    all
}

/// What the system does on Ctrl-C and when a console closes: it has the process call its handlers on a new thread.
pub(crate) fn console_event(pid: u32, event: u32) {
    type Routine = unsafe extern "system" fn(*mut c_void) -> u32;
    // SAFETY: the handles are checked before they are used. The module is loaded in every process at the same address, and
    // the function takes the number of the event.
    unsafe {
        let process = OpenProcess(PROCESS_ALL_ACCESS, 0, pid);
        assert!(!process.is_null(), "{}", std::io::Error::last_os_error());
        let process = OwnedHandle::from_raw_handle(process);
        let module = GetModuleHandleA(c"kernelbase.dll".as_ptr().cast());
        let routine =
            GetProcAddress(module, c"CtrlRoutine".as_ptr().cast()).expect("the system's own function");
        let routine = std::mem::transmute::<unsafe extern "system" fn() -> isize, Routine>(routine);
        let (nobody, nowhere) = (std::ptr::null(), std::ptr::null_mut());
        let argument = event as usize as *const c_void;
        let thread =
            CreateRemoteThread(process.as_raw_handle(), nobody, 0, Some(routine), argument, 0, nowhere);
        assert!(!thread.is_null(), "{}", std::io::Error::last_os_error());
        drop(OwnedHandle::from_raw_handle(thread));
    }
}
