//! Windows: a job, inherited handles, exceptions.

use std::io;
pub(crate) use std::os::windows::io::AsHandle as AsPipe;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::os::windows::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::OnceLock;
use std::time::Duration;

use windows_sys::Win32::Foundation::{
    FILETIME, HANDLE, HANDLE_FLAG_INHERIT, INVALID_HANDLE_VALUE, SetHandleInformation, WAIT_OBJECT_0,
};
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, PROCESSENTRY32W, Process32FirstW, Process32NextW, TH32CS_SNAPPROCESS,
};
use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectExtendedLimitInformation, SetInformationJobObject,
};
use windows_sys::Win32::System::Pipes::PeekNamedPipe;
use windows_sys::Win32::System::Threading::{
    CREATE_NEW_PROCESS_GROUP, GetCurrentProcess, GetProcessTimes, OpenProcess,
    PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_TERMINATE, TerminateProcess, WaitForSingleObject,
};

/// Whether stores can wait in store buffers (`memory = "tso"`).
pub(crate) const STORES_CAN_WAIT: bool = false;

/// Whether plain accesses of plugins become steps by themselves where they conflict, unless a scenario says otherwise.
pub(crate) const LEARNS_PLACES: bool = false;

/// Exit codes from here on are exceptions that nobody handled.
const FIRST_EXCEPTION: u32 = 0xc000_0000;
/// What hosts report for `abort`.
const ABORTED: u32 = 0x4000_0015;
const ACCESS_VIOLATION: u32 = 0xc000_0005;
const STACK_OVERFLOW: u32 = 0xc000_00fd;
/// The code with which we end processes.
const KILLED: u32 = 0xc000_013a;

/// Distance of looks into a pipe that is empty.
const LOOK_INTO_PIPE: Duration = Duration::from_millis(5);

/// Variables that name the folder for temporary files.
pub(crate) const TEMPORARY_FOLDER: [&str; 2] = ["TMP", "TEMP"];

/// The library of strict mode.
pub(crate) const CONTROL_LIBRARY: &str = "waylay_control_windows";
/// Whether there is a library of strict mode for this system.
pub(crate) const KNOWS_STRICT: bool = cfg!(target_arch = "x86_64");
/// Whether hosts account for memory only with a library that is loaded before them.
pub(crate) const HEAP_NEEDS_LIBRARY: bool = false;

/// Prepares a command: its own group (so that Ctrl-C reaches only the driver), our job (so that it dies with us), and
/// these handles open in the child.
pub(crate) fn prepare(command: &mut Command, inherited: Vec<i32>) {
    join_job();
    command.creation_flags(CREATE_NEW_PROCESS_GROUP);
    for raw in inherited {
        // SAFETY: changes a flag of a handle that our caller has open.
        unsafe { SetHandleInformation(raw as isize as HANDLE, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT) };
    }
}

/// The job of this process and of all that it starts.
static JOB: OnceLock<Option<OwnedHandle>> = OnceLock::new();

/// Puts this process into a job that ends all its processes when its last handle, ours, is closed. What we start is in
/// the job from its first instruction on.
fn join_job() {
    JOB.get_or_init(|| {
        // SAFETY: returns a new handle or null.
        let job = own(unsafe { CreateJobObjectW(std::ptr::null(), std::ptr::null()) }).ok()?;
        if !limit(&job, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE) {
            return None;
        }
        // SAFETY: both handles are open.
        (unsafe { AssignProcessToJobObject(job.as_raw_handle(), GetCurrentProcess()) } != 0).then_some(job)
    });
}

fn limit(job: &OwnedHandle, flags: JOB_OBJECT_LIMIT) -> bool {
    let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
    limits.BasicLimitInformation.LimitFlags = flags;
    let size = size_of::<JOBOBJECT_EXTENDED_LIMIT_INFORMATION>() as u32;
    let place = (&raw const limits).cast();
    // SAFETY: the limits live across the call and are as large as said; the job is ours.
    unsafe {
        SetInformationJobObject(job.as_raw_handle(), JobObjectExtendedLimitInformation, place, size) != 0
    }
}

/// Never: nobody inherits a lock.
pub(crate) fn locker_is_dead(_: &std::fs::File) -> bool {
    false
}

/// Lets processes that we started outlive us, for a debugger. A process cannot leave its job, so the job stops ending its
/// processes with us; those that we do not keep are ended one by one.
pub(crate) fn let_outlive_us() {
    if let Some(job) = JOB.get().and_then(Option::as_ref) {
        limit(job, 0);
    }
}

fn own(handle: HANDLE) -> io::Result<OwnedHandle> {
    if handle.is_null() || handle == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: every caller passes the fresh result of a call that opens a handle.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}

/// A pipe; both ends are closed in children unless passed on by [`prepare`].
pub(crate) fn pipe() -> io::Result<(OwnedHandle, OwnedHandle)> {
    let (reader, writer) = io::pipe()?;
    Ok((reader.into(), writer.into()))
}

/// A look into a pipe that somebody else reads.
pub(crate) struct PipeLevel(OwnedHandle);

impl PipeLevel {
    pub(crate) fn of(pipe: &impl AsPipe) -> io::Result<PipeLevel> {
        pipe.as_handle().try_clone_to_owned().map(PipeLevel)
    }

    /// Whether everything that was written has been read.
    pub(crate) fn is_empty(&self) -> bool {
        waiting_bytes(self.0.as_raw_handle()).is_none_or(|bytes| bytes == 0)
    }
}

/// Bytes that can be read from a pipe at once; none at its end.
fn waiting_bytes(pipe: HANDLE) -> Option<u32> {
    let (nowhere, mut bytes) = (std::ptr::null_mut(), 0);
    // SAFETY: the pipe is open; only the place for the number is given.
    let asked = unsafe { PeekNamedPipe(pipe, nowhere, 0, nowhere.cast(), &mut bytes, nowhere.cast()) };
    (asked != 0).then_some(bytes)
}

/// Waits until a read from the pipe would not wait: there is something, or its end. Windows has no wait for that.
pub(crate) fn wait_until_readable(pipe: &impl AsPipe) {
    while waiting_bytes(pipe.as_handle().as_raw_handle()) == Some(0) {
        std::thread::sleep(LOOK_INTO_PIPE);
    }
}

/// The number of a handle; handles have 32 significant bits on every Windows.
pub(crate) fn raw(handle: &impl AsRawHandle) -> i32 {
    handle.as_raw_handle() as isize as i32
}

/// Kills a child and everything that it started. The child still has to be waited for.
pub(crate) fn kill_group(child: &Child) {
    // Wine gives programs of Linux no number, and nobody is the parent of all that nobody started.
    if child.id() == 0 {
        return;
    }
    // What it started may start more meanwhile; a dead parent starts nothing.
    terminate(child.id());
    while let descendants = descendants_of(child)
        && !descendants.is_empty()
    {
        let ended = descendants.into_iter().filter(|pid| terminate(*pid)).count();
        if ended == 0 {
            return;
        }
    }
}

/// Files inherit who may read them from their folder here.
pub(crate) fn restrict_new_files(_mode: u32) {}

/// There is nothing to give back.
pub(crate) fn give_back_mask(_command: &mut Command) {}

/// Nobody traces a child here.
pub(crate) fn let_go(_child: &Child) {}

/// What keeps together everything that a host starts: the job object that it is in does that already.
#[derive(Debug)]
pub(crate) struct Cage;

impl Cage {
    pub(crate) fn new() -> Option<Cage> {
        None
    }

    pub(crate) fn take_in(&self, _command: &mut Command) {}

    pub(crate) fn kill(&self, _host: u32) -> Vec<String> {
        Vec::new()
    }

    pub(crate) fn open(&mut self) {}
}

/// Nobody becomes the child of another here.
pub(crate) fn adopt_orphans() {}

/// What a host started ends with the job that it is in.
pub(crate) fn end_orphans(_host: &Child) -> Vec<String> {
    Vec::new()
}

/// How long what a randomizer held may take to be let go.
const HEALING: Duration = Duration::from_secs(5);

/// Kills a randomizer, and waits until its watchdog has let go of what it held. The child still has to be waited for.
pub(crate) fn kill_randomizer(child: &Child) {
    terminate(child.id());
    let began = std::time::Instant::now();
    while !descendants_of(child).is_empty() && began.elapsed() < HEALING {
        std::thread::sleep(LOOK_INTO_PIPE);
    }
    kill_group(child);
}

fn terminate(pid: u32) -> bool {
    // SAFETY: returns a new handle or null.
    let Ok(process) = own(unsafe { OpenProcess(PROCESS_TERMINATE, 0, pid) }) else { return false };
    // SAFETY: the handle is open with the right to end it.
    unsafe { TerminateProcess(process.as_raw_handle(), KILLED) != 0 }
}

/// Living processes that descend from a child. A number may be another's by now, so whoever is older than its parent
/// does not count.
fn descendants_of(child: &Child) -> Vec<u32> {
    let all = processes();
    let mut found = vec![(child.id(), started_at(child.as_raw_handle()))];
    let mut next = 0;
    while let Some((parent, parent_started)) = found.get(next).copied() {
        next += 1;
        for (pid, of) in &all {
            if *of == parent
                && !found.iter().any(|(known, _)| known == pid)
                // SAFETY: returns a new handle or null.
                && let Ok(process) = own(unsafe { OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, 0, *pid) })
                && let started = started_at(process.as_raw_handle())
                && started >= parent_started
            {
                found.push((*pid, started));
            }
        }
    }
    found.into_iter().skip(1).map(|(pid, _)| pid).collect()
}

/// Process and parent.
fn processes() -> Vec<(u32, u32)> {
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
        found.push((entry.th32ProcessID, entry.th32ParentProcessID));
        // SAFETY: as above.
        more = unsafe { Process32NextW(snapshot.as_raw_handle(), &mut entry) } != 0;
    }
    found
}

fn started_at(process: HANDLE) -> u64 {
    let mut times = [FILETIME::default(); 4];
    let [created, exited, kernel, user] = &mut times;
    // SAFETY: four valid places for the answers.
    unsafe { GetProcessTimes(process, created, exited, kernel, user) };
    u64::from(created.dwHighDateTime) << 32 | u64::from(created.dwLowDateTime)
}

/// Whether a child has ended; it still has to be waited for.
pub(crate) fn has_ended(child: &Child) -> bool {
    // SAFETY: the handle is open; a wait of no time returns at once.
    unsafe { WaitForSingleObject(child.as_raw_handle(), 0) == WAIT_OBJECT_0 }
}

/// How a process ended, in words.
pub(crate) fn describe_exit(status: ExitStatus) -> String {
    match status.code().map(|code| code as u32) {
        Some(code) if code >= FIRST_EXCEPTION => format!("ended with {}", signal_name(code as i32)),
        Some(code) => format!("exited with code {code}"),
        None => "ended in an unknown way".to_owned(),
    }
}

/// The exception that ended a process.
pub(crate) fn ending_signal(status: ExitStatus) -> Option<i32> {
    status.code().filter(|code| *code as u32 >= FIRST_EXCEPTION)
}

/// Whether somebody killed a process: on Windows that leaves any code that the killer wanted, and cannot be told.
pub(crate) fn was_killed(_status: ExitStatus) -> bool {
    false
}

/// Whether an exception can be a stack overflow: Windows has one of its own for it.
pub(crate) fn may_be_overflow(signal: u32) -> bool {
    signal == STACK_OVERFLOW || signal == ACCESS_VIOLATION
}

/// Whether that is `abort`.
pub(crate) fn is_abort(signal: u32) -> bool {
    signal == ABORTED
}

/// Whether a module that calls `abort` says why, where the host finds it.
pub(crate) fn leaves_a_message(_module: &str) -> bool {
    true
}

/// `EXCEPTION_ACCESS_VIOLATION` and so on.
pub(crate) fn signal_name(signal: i32) -> String {
    let name = match signal as u32 {
        ABORTED => "abort",
        ACCESS_VIOLATION => "EXCEPTION_ACCESS_VIOLATION",
        STACK_OVERFLOW => "EXCEPTION_STACK_OVERFLOW",
        0x8000_0002 => "EXCEPTION_DATATYPE_MISALIGNMENT",
        0x8000_0003 => "EXCEPTION_BREAKPOINT",
        0xc000_0006 => "EXCEPTION_IN_PAGE_ERROR",
        0xc000_001d => "EXCEPTION_ILLEGAL_INSTRUCTION",
        0xc000_008c => "EXCEPTION_ARRAY_BOUNDS_EXCEEDED",
        0xc000_0094 => "EXCEPTION_INT_DIVIDE_BY_ZERO",
        0xc000_0095 => "EXCEPTION_INT_OVERFLOW",
        0xc000_0096 => "EXCEPTION_PRIV_INSTRUCTION",
        0xc000_0374 => "STATUS_HEAP_CORRUPTION",
        0xc000_0417 => "STATUS_INVALID_CRUNTIME_PARAMETER (the C library was given an invalid parameter)",
        0xc000_0409 => "STATUS_STACK_BUFFER_OVERRUN (fast fail)",
        0xe06d_7363 => "an uncaught C++ exception",
        0x2047_4343 => "an uncaught exception of Rust or mingw C++",
        other => return format!("exception {other:#x}"),
    };
    name.to_owned()
}

/// An abort is no signal here: the system reports it by its exit code.
pub(crate) fn watch_for_abort(_exit_code: u8) {}

/// Nothing to watch: a console has no further key that reaches a program as an event.
pub(crate) fn watch_for_looks() {}

/// Whether somebody has asked since the last call.
pub(crate) fn take_look() -> bool {
    false
}

/// Nobody becomes the child of another here, and nobody is ended when memory runs out.
pub(crate) fn supervise() {}

/// A command that attaches a debugger to a process.
pub(crate) fn attach_command(pid: u32) -> String {
    format!("windbg -p {pid}")
}

/// A command that ends a process.
pub(crate) fn end_command(pid: u32) -> String {
    format!("taskkill /F /PID {pid}")
}

/// What runs a command under a debugger, written before it.
pub(crate) const DEBUGGER: &str = "windbg";

/// The file in a failure's folder that runs it again.
pub(crate) const REPLAY_SCRIPT: &str = "replay.cmd";

/// What is in it. The failure is found beside the script, because folders are moved and sent to others. The dot is for the
/// backslash before it, which would quote the mark behind.
pub(crate) fn replay_script(command: &str) -> String {
    format!(
        "@echo off\r\nrem Runs this failure again; where it was found that was\r\nrem   {command}\r\n\
         waylay replay \"%~dp0.\" %*\r\n"
    )
}

/// Scripts are run by their interpreter, whatever their permissions.
pub(crate) fn make_executable(_path: &std::path::Path) {}

/// Whether a library of that path can be loaded before all others: any can.
pub(crate) fn can_be_loaded_first(_library: &std::path::Path) -> bool {
    true
}

/// For how long somebody who reads a file may keep it from being replaced.
const READ_WITHIN: Duration = Duration::from_secs(5);

/// Gives a file the name of another, which is gone then. A file that is open cannot be replaced where the file system does not
/// know POSIX' way to do so; whoever has it open (a reader, a virus scanner, our own thread that pushes it to the disk) is done
/// in a moment.
pub(crate) fn replace(file: &std::path::Path, name: &std::path::Path) -> io::Result<()> {
    let begun = std::time::Instant::now();
    loop {
        match std::fs::rename(file, name) {
            Err(error)
                if error.kind() == io::ErrorKind::PermissionDenied && begun.elapsed() < READ_WITHIN =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            done => return done,
        }
    }
}
