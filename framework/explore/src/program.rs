//! What to run, and whether strict mode can work for it.
//!
//! The control library is loaded by the dynamic loader of glibc on x86-64, or by the first instructions of a 64-bit program
//! of Windows. A program into which it cannot be loaded would run uncontrolled and look clean: it is refused with the
//! reason.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::sys::{check, find};

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
    /// Variables that are taken from it before those are set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unset: Vec<String>,
    /// Where it runs.
    pub folder: PathBuf,
    /// Whether every run gets a fresh copy of that folder.
    #[serde(default)]
    pub isolated: bool,
    /// File that it reads as its input; nothing when absent.
    pub stdin: Option<PathBuf>,
    /// Bytes of the reference that its output is compared with: so much of what a run writes is kept, however much it is.
    #[serde(default)]
    pub reference: u64,
    /// What failures are named after, if not the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The suite of which it is one case; the title is the case then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suite: Option<String>,
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
    #[error("{} is no {} program", .0.display(), crate::sys::PROGRAMS)]
    NotElf(PathBuf),
    #[error("{} is built for another processor: strict mode knows x86-64 only", .0.display())]
    OtherArchitecture(PathBuf),
    #[error(
        "{} is statically linked, so no library can be loaded first into it: link it dynamically (without -static)",
        .0.display()
    )]
    Static(PathBuf),
    #[error(
        "{file} is a Go program, whose runtime makes and switches threads by system calls of its own: strict mode cannot \
         order them; `waylay randomizer -- {file}` disturbs them from outside",
        file = .0.display()
    )]
    Go(PathBuf),
    #[error("{} is linked with musl: strict mode knows the threads of glibc only, build for a -gnu target", .0.display())]
    Musl(PathBuf),
    #[error(
        "{} is setuid, setgid or has file capabilities, so the loader ignores preloaded libraries: test a copy without",
        .0.display()
    )]
    Privileged(PathBuf),
    #[error(
        "the folder {} that the program ran in is not there any more: make it again, with the files that it needs",
        .0.display()
    )]
    FolderGone(PathBuf),
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
            unset: Vec::new(),
            folder,
            isolated: false,
            stdin: None,
            reference: 0,
            title: None,
            suite: None,
        })
    }

    /// The same with a file to read as its input.
    pub fn with_input(mut self, file: &Path) -> Result<Program, ProgramError> {
        let input = |source| ProgramError::Input { file: file.to_owned(), source };
        File::open(file).map_err(input)?;
        self.stdin = Some(fs::canonicalize(file).map_err(input)?);
        Ok(self)
    }

    /// Gives a command the variables that it runs with.
    pub(crate) fn set_variables(&self, command: &mut Command) {
        self.unset.iter().for_each(|name| {
            command.env_remove(name);
        });
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
    }

    /// What failures are named after: the file's own name, if nothing else was said.
    pub fn title(&self) -> String {
        if let Some(title) = &self.title {
            return title.clone();
        }
        self.file.file_name().unwrap_or(self.file.as_os_str()).to_string_lossy().into_owned()
    }

    /// What a signature names: a case with its suite, or the title.
    pub fn subject(&self) -> String {
        match &self.suite {
            Some(suite) => format!("{suite}::{}", self.title()),
            None => self.title(),
        }
    }

    /// The scenario that its campaign knows it under.
    pub fn scenario(&self) -> String {
        self.suite.clone().unwrap_or_else(|| "explore".to_owned())
    }

    /// Whether it can still be run; for records of earlier days.
    pub fn check(&self) -> Result<(), ProgramError> {
        check(&self.file)?;
        if !self.folder.is_dir() {
            return Err(ProgramError::FolderGone(self.folder.clone()));
        }
        if let Some(file) = &self.stdin {
            File::open(file).map_err(|source| ProgramError::Input { file: file.clone(), source })?;
        }
        Ok(())
    }
}

#[cfg(all(test, target_os = "linux"))]
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
        // The linker of Go gives every program this section; another one's name takes as many bytes.
        let mut go = own.clone();
        let name = go.windows(16).rposition(|part| part == b"\0.gnu.version_r\0");
        let name = name.expect("programs say which versions they need") + 1;
        go[name..name + 14].copy_from_slice(b".go.buildinfo\0");
        let error = refused(&file(folder, "go", &go, 0o755));
        assert!(error.to_string().contains("waylay randomizer -- "), "{error}");
        let script = refused(&file(folder, "script", b"#!/bin/sh -e\ntrue\n", 0o755));
        assert!(script.to_string().contains("run by /bin/sh -e"), "{script}");
        let good = file(folder, "good", &own, 0o755);
        let program = Program::new(&[good, "x".to_owned()], Some(folder)).unwrap();
        assert_eq!((program.title().as_str(), program.arguments.len()), ("good", 1));
    }
}
