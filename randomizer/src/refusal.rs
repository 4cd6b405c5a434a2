//! Why a process cannot be disturbed, and who holds it.

use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};

use crate::identity::ProcessId;

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
    #[error("not permitted to trace process {pid}: {hint}")]
    Denied { pid: ProcessId, hint: &'static str },
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
