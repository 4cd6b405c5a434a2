//! Linux: ELF files, signals, fork servers and snapshots, and processes that are held by tracing them.

pub(crate) mod census;
pub mod debugger;
pub(crate) mod held;
pub(crate) mod restored;
pub(crate) mod server;
pub(crate) mod stand_in;

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use super::Death;
use crate::program::ProgramError;

/// How a fork server fails.
pub type ServerFailure = waylay_control_protocol::ServerError;

/// What programs are.
pub(crate) const PROGRAMS: &str = "ELF";
/// Modules that are on every stack, and change with every build of theirs: the C library and the host of plugin tests.
pub(crate) const SILENT: [&str; 3] = ["/libc.so.6+", "/ld-linux-x86-64.so.2+", "/waylay+"];
/// Whether processes that are to be looked at hold themselves.
pub(crate) const HOLD_THEMSELVES: bool = false;

/// A status as `waitpid` gives it.
pub(crate) fn exit_status(status: i32) -> ExitStatus {
    ExitStatus::from_raw(status)
}

/// The signal that ended a process.
pub(crate) fn death(status: ExitStatus) -> Option<Death> {
    let signal = status.signal()?;
    Some(Death { name: signal_name(signal), is_abort: signal == libc::SIGABRT })
}

/// Makes the same link in another place.
pub(crate) fn copy_link(from: &Path, to: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(fs::read_link(from)?, to)
}

/// The file behind a name: as the shell finds it.
pub(crate) fn find(name: &str) -> Result<PathBuf, ProgramError> {
    let unreadable = |source| ProgramError::Unreadable { file: name.into(), source };
    if name.contains('/') {
        return fs::canonicalize(name).map_err(unreadable);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let executable =
        |file: &PathBuf| fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.mode() & 0o111 != 0);
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(executable);
    fs::canonicalize(found.ok_or_else(|| ProgramError::NotInPath(name.to_owned()))?).map_err(unreadable)
}

/// Whether strict mode can work for it.
pub(crate) fn check(file: &Path) -> Result<(), ProgramError> {
    let unreadable = |source| ProgramError::Unreadable { file: file.to_owned(), source };
    let meta = fs::metadata(file).map_err(unreadable)?;
    if !meta.is_file() || meta.mode() & 0o111 == 0 {
        return Err(ProgramError::NotExecutable(file.to_owned()));
    }
    if meta.mode() & 0o6000 != 0 || has_capabilities(file) {
        return Err(ProgramError::Privileged(file.to_owned()));
    }
    let mut open = File::open(file).map_err(unreadable)?;
    let mut head = Vec::new();
    open.by_ref().take(256).read_to_end(&mut head).map_err(unreadable)?;
    if let Some(line) = head.strip_prefix(b"#!") {
        let line =
            String::from_utf8_lossy(line.split(|&byte| byte == b'\n').next().unwrap_or(line)).into_owned();
        return Err(ProgramError::Script { file: file.to_owned(), interpreter: line.trim().to_owned() });
    }
    if is_go(file) {
        return Err(ProgramError::Go(file.to_owned()));
    }
    match loader(&open, &head).map_err(unreadable)? {
        Loader::NotElf => Err(ProgramError::NotElf(file.to_owned())),
        Loader::OtherArchitecture => Err(ProgramError::OtherArchitecture(file.to_owned())),
        Loader::None => Err(ProgramError::Static(file.to_owned())),
        Loader::Path(path) if path.contains("ld-musl") => Err(ProgramError::Musl(file.to_owned())),
        Loader::Path(_) => Ok(()),
    }
}

/// Whether it has the section that Go's linker gives to every program, with cgo or without.
fn is_go(file: &Path) -> bool {
    use object::read::elf::FileHeader;
    let found = || {
        let bytes = fs::read(file).ok()?;
        let header = object::elf::FileHeader64::<object::Endianness>::parse(&*bytes).ok()?;
        let endian = header.endian().ok()?;
        let sections = header.sections(endian, &*bytes).ok()?;
        let mut names = sections.iter().filter_map(|section| sections.section_name(endian, section).ok());
        Some(names.any(|name| name == b".go.buildinfo" || name == b".note.go.buildid"))
    };
    found().unwrap_or(false)
}

fn has_capabilities(file: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let Ok(path) = std::ffi::CString::new(file.as_os_str().as_bytes()) else { return false };
    // SAFETY: both names are NUL-terminated; a length of zero asks for the size only.
    unsafe { libc::getxattr(path.as_ptr(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0) > 0 }
}

/// Who starts an ELF file.
enum Loader {
    NotElf,
    OtherArchitecture,
    None,
    Path(String),
}

/// Reads the program headers of a 64-bit ELF file; offsets are those of the System V ABI.
fn loader(file: &File, head: &[u8]) -> io::Result<Loader> {
    const CLASS_64: u8 = 2;
    const X86_64: u16 = 62;
    const INTERPRETER: u32 = 3;
    let half = |bytes: &[u8], at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    let long = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
    if head.len() < 64 || !head.starts_with(b"\x7fELF") {
        return Ok(Loader::NotElf);
    }
    if head[4] != CLASS_64 || half(head, 18) != X86_64 {
        return Ok(Loader::OtherArchitecture);
    }
    let (offset, size, count) = (long(head, 32), half(head, 54), half(head, 56));
    for index in 0..u64::from(count) {
        let mut header = [0; 56];
        file.read_exact_at(&mut header, offset + index * u64::from(size))?;
        if u32::from_le_bytes([header[0], header[1], header[2], header[3]]) == INTERPRETER {
            let mut path = vec![0; long(&header, 32).min(4096) as usize];
            file.read_exact_at(&mut path, long(&header, 8))?;
            return Ok(Loader::Path(String::from_utf8_lossy(&path).trim_end_matches('\0').to_owned()));
        }
    }
    Ok(Loader::None)
}

/// `SIGSEGV` and so on.
fn signal_name(signal: i32) -> String {
    let known = [
        (libc::SIGILL, "SIGILL"),
        (libc::SIGTRAP, "SIGTRAP"),
        (libc::SIGABRT, "SIGABRT"),
        (libc::SIGBUS, "SIGBUS"),
        (libc::SIGFPE, "SIGFPE"),
        (libc::SIGKILL, "SIGKILL"),
        (libc::SIGSEGV, "SIGSEGV"),
        (libc::SIGPIPE, "SIGPIPE"),
        (libc::SIGTERM, "SIGTERM"),
        (libc::SIGSYS, "SIGSYS"),
    ];
    let name = known.iter().find(|(number, _)| *number == signal);
    name.map_or_else(|| format!("signal {signal}"), |(_, name)| (*name).to_owned())
}

/// Gives back the memory of what was written to such a file behind its first bytes, once more than `held` is. It stays as long as it
/// was, and is read as zeroes there.
pub(crate) fn forget_behind(file: &File, first: u64, held: u64) -> io::Result<()> {
    /// Bytes of a page, of which only whole ones are given back.
    const PAGE: u64 = 4096;
    /// Bytes of a block as `stat` counts them.
    const BLOCK: u64 = 512;
    let metadata = file.metadata()?;
    let (from, to) = (first.next_multiple_of(PAGE), metadata.len() / PAGE * PAGE);
    if metadata.blocks().saturating_mul(BLOCK) < from.saturating_add(held) || to <= from {
        return Ok(());
    }
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: plain call on an open descriptor.
    match unsafe { libc::fallocate(file.as_raw_fd(), mode, from as libc::off_t, (to - from) as libc::off_t) }
    {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A file in memory that appends: all processes of a fork server write into it.
pub(crate) fn empty_file(name: &std::ffi::CStr) -> io::Result<File> {
    // SAFETY: the name is NUL-terminated; the descriptor is owned right away.
    unsafe {
        let fd = libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        let file = File::from_raw_fd(fd);
        if libc::fcntl(fd, libc::F_SETFL, libc::O_APPEND) < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::MetadataExt;

    use crate::program::Program;
    use crate::streams::{GLANCE, KEPT, Streams};

    /// A program that writes without end takes no more memory for it than this.
    #[test]
    fn what_is_written_without_end_is_given_back() {
        let program = std::env::current_exe().unwrap();
        let program = Program::new(&[program.to_str().unwrap().to_owned()], None).unwrap();
        let mut streams = Streams::new(&program).unwrap();
        let block = vec![b'x'; 1 << 20];
        for _ in 0..24 {
            (&*streams.stdout).write_all(&block).unwrap();
        }
        let written = (24 << 20) as u64;
        // Somebody else looks, now and then.
        while streams.stdout.metadata().unwrap().blocks() * 512 > 2 * KEPT {
            std::thread::sleep(GLANCE);
        }
        assert_eq!(streams.stdout.metadata().unwrap().len(), written);
        (&*streams.stdout).write_all(b"end").unwrap();
        assert_eq!(streams.stdout.metadata().unwrap().len(), written + 3);
        assert!(streams.take().unwrap().0.iter().all(|&byte| byte == b'x'));
        (&*streams.stdout).write_all(b"next").unwrap();
        assert_eq!(streams.take().unwrap().0, b"next");
    }
}
