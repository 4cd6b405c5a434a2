//! How the control library gets into a program of Windows before its first instruction.
//!
//! The process is created suspended. Its main thread is to begin at the program's entry point, whose address stands in a
//! register; instead it gets the address of a few instructions of ours that load the library, call it, and go on to the
//! entry point. By then Windows has loaded everything that the program is linked with.

use std::ffi::{CStr, c_void};
use std::io;
use std::os::windows::ffi::OsStrExt;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::os::windows::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};

use windows_sys::Win32::Foundation::{HANDLE, INVALID_HANDLE_VALUE};
use windows_sys::Win32::System::Diagnostics::Debug::{
    CONTEXT, CONTEXT_FULL_AMD64, GetThreadContext, SetThreadContext, WriteProcessMemory,
};
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, TH32CS_SNAPTHREAD, THREADENTRY32, Thread32First, Thread32Next,
};
use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleA, GetProcAddress};
use windows_sys::Win32::System::Memory::{MEM_COMMIT, MEM_RESERVE, PAGE_EXECUTE_READWRITE, VirtualAllocEx};
use windows_sys::Win32::System::Threading::{
    CREATE_NEW_PROCESS_GROUP, CREATE_SUSPENDED, OpenThread, ResumeThread, THREAD_GET_CONTEXT,
    THREAD_SET_CONTEXT, THREAD_SUSPEND_RESUME,
};

/// The function of the library that takes the main thread.
const ENTER: &[u8] = b"waylay_control_enter\0";

/// Starts the command with the library in it. The main thread is under control from before its entry point on.
pub(crate) fn spawn(mut command: Command, library: &Path) -> io::Result<Child> {
    command.creation_flags(CREATE_SUSPENDED | CREATE_NEW_PROCESS_GROUP);
    let mut child = command.spawn()?;
    let put = || {
        let thread = main_thread(child.id())?;
        divert(child.as_raw_handle(), thread.as_raw_handle(), library)?;
        // SAFETY: the handle is open with the right to resume.
        match unsafe { ResumeThread(thread.as_raw_handle()) } {
            u32::MAX => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    };
    if let Err(error) = put() {
        let _ = child.kill();
        let _ = child.wait();
        return Err(error);
    }
    Ok(child)
}

/// The only thread of a process that was created suspended.
fn main_thread(process: u32) -> io::Result<OwnedHandle> {
    // SAFETY: handles are owned right away; the entry says its own size.
    unsafe {
        let snapshot = CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0);
        if snapshot == INVALID_HANDLE_VALUE {
            return Err(io::Error::last_os_error());
        }
        let snapshot = OwnedHandle::from_raw_handle(snapshot);
        let mut entry =
            THREADENTRY32 { dwSize: size_of::<THREADENTRY32>() as u32, ..THREADENTRY32::default() };
        let mut more = Thread32First(snapshot.as_raw_handle(), &mut entry) != 0;
        while more && entry.th32OwnerProcessID != process {
            more = Thread32Next(snapshot.as_raw_handle(), &mut entry) != 0;
        }
        if !more {
            return Err(io::Error::other("the new process has no thread"));
        }
        let rights = THREAD_GET_CONTEXT | THREAD_SET_CONTEXT | THREAD_SUSPEND_RESUME;
        let thread = OpenThread(rights, 0, entry.th32ThreadID);
        if thread.is_null() {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedHandle::from_raw_handle(thread))
    }
}

#[repr(align(16))]
struct Aligned(CONTEXT);

/// Makes the thread begin with our instructions.
fn divert(process: HANDLE, thread: HANDLE, library: &Path) -> io::Result<()> {
    let mut context = Aligned(CONTEXT { ContextFlags: CONTEXT_FULL_AMD64, ..CONTEXT::default() });
    // SAFETY: the context is aligned and lives across the calls; the memory is written inside of what was reserved.
    unsafe {
        if GetThreadContext(thread, &mut context.0) == 0 {
            return Err(io::Error::last_os_error());
        }
        let nowhere = std::ptr::null::<c_void>();
        let (code, start) = instructions(library, context.0.Rcx)?;
        let memory =
            VirtualAllocEx(process, nowhere, code.len(), MEM_COMMIT | MEM_RESERVE, PAGE_EXECUTE_READWRITE);
        if memory.is_null()
            || WriteProcessMemory(process, memory, code.as_ptr().cast(), code.len(), std::ptr::null_mut())
                == 0
        {
            return Err(io::Error::last_os_error());
        }
        context.0.Rcx = memory as u64 + start as u64;
        if SetThreadContext(thread, &context.0) == 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// A function of kernel32, which is at the same address in all processes of a session.
fn kernel_function(name: &CStr) -> io::Result<u64> {
    // SAFETY: both names end with a zero.
    let found = unsafe {
        let kernel = GetModuleHandleA(c"kernel32.dll".as_ptr().cast());
        GetProcAddress(kernel, name.as_ptr().cast())
    };
    found.map(|found| found as usize as u64).ok_or_else(|| io::Error::other("kernel32 lacks a function"))
}

/// Loads the library, calls it and goes on at `entry`. Addresses and texts stand in front of the code; returns where that
/// begins.
fn instructions(library: &Path, entry: u64) -> io::Result<(Vec<u8>, usize)> {
    const LOAD: usize = 0;
    const LOOK_UP: usize = 8;
    const EXIT: usize = 16;
    const GO_ON: usize = 24;
    const NAME: usize = 32;
    let path_at = (NAME + ENTER.len()).next_multiple_of(8);
    let mut bytes = Vec::new();
    for address in [
        kernel_function(c"LoadLibraryW")?,
        kernel_function(c"GetProcAddress")?,
        kernel_function(c"ExitProcess")?,
        entry,
    ] {
        bytes.extend(address.to_le_bytes());
    }
    bytes.extend(ENTER);
    bytes.resize(path_at, 0);
    for unit in library.as_os_str().encode_wide().chain([0]) {
        bytes.extend(unit.to_le_bytes());
    }
    bytes.resize(bytes.len().next_multiple_of(16), 0);
    let start = bytes.len();
    let mut code = Code(bytes);
    code.put(&[0x51]); // push rcx: what the entry point is given, and the stack is aligned
    code.put(&[0x48, 0x83, 0xec, 0x20]); // sub rsp, 32
    code.to(&[0x48, 0x8d, 0x0d], path_at); // lea rcx, [path]
    code.to(&[0xff, 0x15], LOAD); // call [LoadLibraryW]
    code.put(&[0x48, 0x85, 0xc0]); // test rax, rax
    let first = code.skip_if_zero();
    code.put(&[0x48, 0x89, 0xc1]); // mov rcx, rax
    code.to(&[0x48, 0x8d, 0x15], NAME); // lea rdx, [name]
    code.to(&[0xff, 0x15], LOOK_UP); // call [GetProcAddress]
    code.put(&[0x48, 0x85, 0xc0]); // test rax, rax
    let second = code.skip_if_zero();
    code.put(&[0xff, 0xd0]); // call rax
    code.put(&[0x48, 0x83, 0xc4, 0x20]); // add rsp, 32
    code.put(&[0x59]); // pop rcx
    code.to(&[0xff, 0x25], GO_ON); // jmp [entry]
    for from in [first, second] {
        code.0[from] = (code.0.len() - from - 1) as u8;
    }
    code.put(&[0xb9, 3, 0, 0, 0]); // mov ecx, 3
    code.to(&[0xff, 0x15], EXIT); // call [ExitProcess]
    Ok((code.0, start))
}

/// Code that is being put together.
struct Code(Vec<u8>);

impl Code {
    fn put(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    /// An instruction whose operand is at that place, relative to its end.
    fn to(&mut self, instruction: &[u8], place: usize) {
        self.put(instruction);
        let end = self.0.len() + 4;
        self.0.extend((place as i32 - end as i32).to_le_bytes());
    }

    /// A jump forward; returns where its length is to be put.
    fn skip_if_zero(&mut self) -> usize {
        self.put(&[0x74, 0]);
        self.0.len() - 1
    }
}
