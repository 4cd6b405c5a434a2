//! What is to be disturbed, and why it may be out of reach.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::process::ExitStatus;

use serde::{Deserialize, Serialize};

use crate::identity::ProcessId;
use crate::sys;

/// A process that can be disturbed: it exists, is not one of ours, and the system lets us.
#[derive(Debug)]
pub struct Target {
    pid: ProcessId,
    launched: Option<sys::Launched>,
}

/// A process that holds on to another as a debugger does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tracer {
    /// The process.
    pub pid: ProcessId,
    /// Its name.
    pub name: String,
}

/// Why a process cannot be disturbed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields are what the messages say")]
pub enum TargetError {
    /// There is none of that number.
    #[error("there is no process {pid}")]
    NoSuchProcess { pid: ProcessId },
    /// The number is that of a thread.
    #[error(
        "{pid} is a thread of process {process}: use --pid {process}, and --include to choose threads by name"
    )]
    IsThread { pid: ProcessId, process: ProcessId },
    /// It has ended but was not reaped.
    #[error("process {pid} has ended already and only waits for its parent to take note")]
    Ended { pid: ProcessId },
    /// It is this process.
    #[error("process {pid} is the randomizer itself")]
    Own { pid: ProcessId },
    /// It is a process that started us.
    #[error(
        "process {pid} ({name}) is an ancestor of the randomizer: suspending it could stop the one that waits for us"
    )]
    Ancestor { pid: ProcessId, name: String },
    /// It is part of the kernel.
    #[error("process {pid} is a thread of the kernel and cannot be suspended")]
    Kernel { pid: ProcessId },
    /// It runs a 32-bit program.
    #[error("process {pid} runs a 32-bit program: only 64-bit programs are supported")]
    ThirtyTwoBit { pid: ProcessId },
    /// Somebody else traces it.
    #[error("process {pid} is traced by {tracer}, and the kernel allows one tracer: let it detach first")]
    Traced { pid: ProcessId, tracer: Tracer },
    /// The system does not let us.
    #[error("not permitted to trace process {pid}: {}", sys::permission_hint(*.scope))]
    Denied { pid: ProcessId, scope: Option<u32> },
    /// The program could not be started.
    #[error("cannot start {program}: {source}")]
    Launch { program: String, source: io::Error },
    /// Something else.
    #[error("cannot {action} process {pid}: {source}")]
    System { action: &'static str, pid: ProcessId, source: io::Error },
}

impl fmt::Display for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {})", self.name, self.pid)
    }
}

impl Target {
    /// A process that runs already.
    ///
    /// # Errors
    /// When it cannot be disturbed; it was not stopped to find out.
    pub fn process(pid: ProcessId) -> Result<Target, TargetError> {
        sys::check_target(pid)?;
        Ok(Target { pid, launched: None })
    }

    /// A program to start.
    ///
    /// # Errors
    /// When it cannot be started or not be disturbed.
    pub fn command(program: &OsString, arguments: &[OsString]) -> Result<Target, TargetError> {
        let launched = sys::launch(program, arguments).map_err(|source| TargetError::Launch {
            program: program.to_string_lossy().into_owned(),
            source,
        })?;
        let pid = launched.pid();
        match sys::check_target(pid) {
            // A program that is over this soon was not disturbed, which is told in the end.
            Ok(()) | Err(TargetError::Ended { .. } | TargetError::NoSuchProcess { .. }) => {
                Ok(Target { pid, launched: Some(launched) })
            }
            Err(error) => {
                launched.kill();
                Err(error)
            }
        }
    }

    /// The process.
    pub fn pid(&self) -> ProcessId {
        self.pid
    }

    /// Whether the program was started by us.
    pub fn is_ours(&self) -> bool {
        self.launched.is_some()
    }

    /// Hands a signal that was meant for both of us on to a program that we started.
    pub(crate) fn forward(&self, signal: i32) {
        if let Some(launched) = &self.launched {
            launched.signal(signal);
        }
    }

    /// Waits for the end of a program that we started. `known` is the status that the suspending thread was given.
    pub(crate) fn wait(&mut self, known: Option<i32>) -> Option<ExitStatus> {
        self.launched.take()?.wait(known)
    }
}
