//! Windows: PE files, exceptions, a process per run with the control library put into it, and processes that hold themselves.

pub(crate) mod census;
pub mod debugger;
pub(crate) mod held;
mod injection;
pub(crate) mod restored;
pub(crate) mod server;

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::windows::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use super::Death;
use crate::program::ProgramError;

/// How a fork server fails: there is none.
pub type ServerFailure = std::convert::Infallible;

/// What programs are.
pub(crate) const PROGRAMS: &str = "64-bit Windows";
/// Modules that are on every stack: Windows itself, and the host of plugin tests.
pub(crate) const SILENT: [&str; 5] =
    ["\\ntdll.dll+", "\\kernel32.dll+", "\\KERNELBASE.dll+", "\\msvcrt.dll+", "\\waylay.exe+"];
/// Whether processes that are to be looked at hold themselves.
pub(crate) const HOLD_THEMSELVES: bool = true;

/// A process's exit code.
pub(crate) fn exit_status(status: i32) -> ExitStatus {
    ExitStatus::from_raw(status as u32)
}

/// The exception that ended a process.
pub(crate) fn death(status: ExitStatus) -> Option<Death> {
    const FIRST: u32 = 0xc000_0000;
    const FAST_FAIL: u32 = 0xc000_0409;
    let code = status.code()? as u32;
    (code >= FIRST).then(|| Death { name: exception_name(code), is_abort: code == FAST_FAIL })
}

/// `EXCEPTION_ACCESS_VIOLATION` and so on.
fn exception_name(code: u32) -> String {
    let name = match code {
        0xc000_0005 => "EXCEPTION_ACCESS_VIOLATION",
        0xc000_001d => "EXCEPTION_ILLEGAL_INSTRUCTION",
        0xc000_0094 => "EXCEPTION_INT_DIVIDE_BY_ZERO",
        0xc000_00fd => "EXCEPTION_STACK_OVERFLOW",
        0xc000_0374 => "STATUS_HEAP_CORRUPTION",
        0xc000_0409 => "STATUS_STACK_BUFFER_OVERRUN (fast fail)",
        other => return format!("exception {other:#x}"),
    };
    name.to_owned()
}

/// Nothing: such files are on the disk here, not in memory.
#[allow(clippy::unnecessary_wraps)] // its twin can fail
pub(crate) fn forget_behind(_: &File, _first: u64, _held: u64) -> io::Result<()> {
    Ok(())
}

/// A file that is gone when nobody has it open any more.
pub(crate) fn empty_file(_name: &std::ffi::CStr) -> io::Result<File> {
    tempfile::tempfile()
}

/// Copies what a link leads to: links need a privilege here.
pub(crate) fn copy_link(from: &Path, to: &Path) -> io::Result<()> {
    if from.is_file() { fs::copy(from, to).map(|_| ()) } else { Ok(()) }
}

/// The file behind a name: as the command line finds it.
pub(crate) fn find(name: &str) -> Result<PathBuf, ProgramError> {
    let with_ending = |path: &Path| {
        let mut ending = path.to_owned().into_os_string();
        ending.push(".exe");
        [path.to_owned(), PathBuf::from(ending)].into_iter().find(|file| file.is_file())
    };
    if name.contains(['/', '\\', ':']) {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let found = with_ending(Path::new(name)).ok_or_else(missing).and_then(std::path::absolute);
        return found.map_err(|source| ProgramError::Unreadable { file: name.into(), source });
    }
    // The command line looks into the current folder first.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let here = std::path::absolute(".").into_iter();
    let found = here.chain(std::env::split_paths(&path)).find_map(|folder| with_ending(&folder.join(name)));
    found.ok_or_else(|| ProgramError::NotInPath(name.to_owned()))
}

/// Whether strict mode can work for it.
pub(crate) fn check(file: &Path) -> Result<(), ProgramError> {
    const X86_64: u16 = 0x8664;
    const LIBRARY: u16 = 0x2000;
    let unreadable = |source| ProgramError::Unreadable { file: file.to_owned(), source };
    let mut open = File::open(file).map_err(unreadable)?;
    let mut at = |place: u64| -> Option<[u8; 24]> {
        let mut bytes = [0; 24];
        open.seek(SeekFrom::Start(place)).and_then(|_| open.read_exact(&mut bytes)).ok().map(|()| bytes)
    };
    let header = at(0)
        .filter(|bytes| bytes.starts_with(b"MZ"))
        .and_then(|_| at(0x3c))
        .and_then(|bytes| at(u64::from(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))));
    let Some(header) = header.filter(|bytes| bytes.starts_with(b"PE\0\0")) else {
        return Err(ProgramError::NotElf(file.to_owned()));
    };
    let half = |place: usize| u16::from_le_bytes([header[place], header[place + 1]]);
    if half(22) & LIBRARY != 0 {
        return Err(ProgramError::NotExecutable(file.to_owned()));
    }
    if half(4) != X86_64 {
        return Err(ProgramError::OtherArchitecture(file.to_owned()));
    }
    Ok(())
}
