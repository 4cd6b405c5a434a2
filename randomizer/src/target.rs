//! What is to be disturbed, and why it may be out of reach.

use std::ffi::OsString;
use std::process::ExitStatus;

use crate::identity::ProcessId;
pub use crate::refusal::{TargetError, Tracer};
use crate::sys;

/// A process that can be disturbed: it exists, is not one of ours, and the system lets us.
#[derive(Debug)]
pub struct Target {
    pid: ProcessId,
    launched: Option<sys::Launched>,
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
