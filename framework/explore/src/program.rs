//! What to run, and whether strict mode can work for it.
//!
//! The control library is loaded by the dynamic loader of glibc on x86-64. A program that this loader does not start, or
//! for which it ignores preloaded libraries, would run uncontrolled and look clean: it is refused with the reason.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A program, its arguments and its surroundings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// The executable file.
    pub file: PathBuf,
    /// The name it is called by.
    pub name: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Variables set in addition to ours.
    pub environment: Vec<(String, String)>,
    /// Where it runs.
    pub folder: PathBuf,
    /// Whether every run gets a fresh copy of that folder.
    #[serde(default)]
    pub isolated: bool,
    /// File that it reads as its input; nothing when absent.
    pub stdin: Option<PathBuf>,
    /// What failures are named after, if not the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// Why strict mode cannot work for a program.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ProgramError {
    #[error("no program given: write it after `--`")]
    Nothing,
    #[error("cannot find the program `{0}` in PATH")]
    NotInPath(String),
    #[error("cannot read {}: {source}", .file.display())]
    Unreadable { file: PathBuf, source: io::Error },
    #[error("{} is not a file that can be executed", .0.display())]
    NotExecutable(PathBuf),
    #[error(
        "{} is a script run by {interpreter}: strict mode controls one program, not what a script starts. \
         Name the program that the script starts, or `{interpreter} {}` if the interpreter is to be tested",
        .file.display(),
        .file.display()
    )]
    Script { file: PathBuf, interpreter: String },
    #[error("{} is no ELF program", .0.display())]
    NotElf(PathBuf),
    #[error("{} is built for another processor: strict mode knows x86-64 only", .0.display())]
    OtherArchitecture(PathBuf),
    #[error(
        "{} is statically linked, so no library can be loaded first into it: link it dynamically (without -static)",
        .0.display()
    )]
    Static(PathBuf),
    #[error("{} is linked with musl: strict mode knows the threads of glibc only, build for a -gnu target", .0.display())]
    Musl(PathBuf),
    #[error(
        "{} is setuid, setgid or has file capabilities, so the loader ignores preloaded libraries: test a copy without",
        .0.display()
    )]
    Privileged(PathBuf),
    #[error("cannot use the folder {}: {source}", .folder.display())]
    Folder { folder: PathBuf, source: io::Error },
    #[error("cannot read the input {}: {source}", .file.display())]
    Input { file: PathBuf, source: io::Error },
}

impl Program {
    /// A command line, checked.
    pub fn new(command: &[String], folder: Option<&Path>) -> Result<Program, ProgramError> {
        let (name, arguments) = command.split_first().ok_or(ProgramError::Nothing)?;
        let file = find(name)?;
        check(&file)?;
        let folder = folder.unwrap_or(Path::new("."));
        let folder = fs::canonicalize(folder)
            .map_err(|source| ProgramError::Folder { folder: folder.to_owned(), source })?;
        Ok(Program {
            file,
            name: name.clone(),
            arguments: arguments.to_vec(),
            environment: Vec::new(),
            folder,
            isolated: false,
            stdin: None,
            title: None,
        })
    }

    /// The same with a file to read as its input.
    pub fn with_input(mut self, file: &Path) -> Result<Program, ProgramError> {
        let input = |source| ProgramError::Input { file: file.to_owned(), source };
        File::open(file).map_err(input)?;
        self.stdin = Some(fs::canonicalize(file).map_err(input)?);
        Ok(self)
    }

    /// What failures are named after: the file's own name, if nothing else was said.
    pub fn title(&self) -> String {
        if let Some(title) = &self.title {
            return title.clone();
        }
        self.file.file_name().unwrap_or(self.file.as_os_str()).to_string_lossy().into_owned()
    }

    /// Whether it can still be run; for records of earlier days.
    pub fn check(&self) -> Result<(), ProgramError> {
        check(&self.file)
    }
}

/// The file behind a name: as the shell finds it.
fn find(name: &str) -> Result<PathBuf, ProgramError> {
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

fn check(file: &Path) -> Result<(), ProgramError> {
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
    match loader(&open, &head).map_err(unreadable)? {
        Loader::NotElf => Err(ProgramError::NotElf(file.to_owned())),
        Loader::OtherArchitecture => Err(ProgramError::OtherArchitecture(file.to_owned())),
        Loader::None => Err(ProgramError::Static(file.to_owned())),
        Loader::Path(path) if path.contains("ld-musl") => Err(ProgramError::Musl(file.to_owned())),
        Loader::Path(_) => Ok(()),
    }
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn file(folder: &Path, name: &str, content: &[u8], mode: u32) -> String {
        let path = folder.join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn refused(command: &str) -> ProgramError {
        Program::new(&[command.to_owned()], None).unwrap_err()
    }

    #[test]
    fn what_cannot_work_is_refused_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let own = fs::read("/proc/self/exe").unwrap();
        let mut arm = own[..256].to_vec();
        arm[18] = 183;
        let mut musl = own.clone();
        let glibc = b"/lib64/ld-linux-x86-64.so.2\0";
        let interpreter = own.windows(glibc.len()).position(|part| part == glibc).unwrap();
        musl[interpreter..interpreter + glibc.len()].copy_from_slice(b"/lib/ld-musl-x86_64.so.1\0\0\0\0");
        let mut none = own[..256].to_vec();
        none[56] = 0;
        assert!(matches!(Program::new(&[], None), Err(ProgramError::Nothing)));
        assert!(matches!(refused("no-such-program-anywhere"), ProgramError::NotInPath(_)));
        assert!(matches!(refused("/no/such/file"), ProgramError::Unreadable { .. }));
        assert!(matches!(refused(&file(folder, "plain", b"text", 0o644)), ProgramError::NotExecutable(_)));
        assert!(matches!(refused(&file(folder, "text", b"text", 0o755)), ProgramError::NotElf(_)));
        assert!(matches!(refused(&file(folder, "arm", &arm, 0o755)), ProgramError::OtherArchitecture(_)));
        assert!(matches!(refused(&file(folder, "none", &none, 0o755)), ProgramError::Static(_)));
        assert!(matches!(refused(&file(folder, "musl", &musl, 0o755)), ProgramError::Musl(_)));
        assert!(matches!(refused(&file(folder, "suid", &own, 0o4755)), ProgramError::Privileged(_)));
        let script = refused(&file(folder, "script", b"#!/bin/sh -e\ntrue\n", 0o755));
        assert!(script.to_string().contains("run by /bin/sh -e"), "{script}");
        let good = file(folder, "good", &own, 0o755);
        let program = Program::new(&[good, "x".to_owned()], Some(folder)).unwrap();
        assert_eq!((program.title().as_str(), program.arguments.len()), ("good", 1));
    }
}
