//! A program that we start ourselves.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};

use crate::identity::ProcessId;

/// A child of ours.
#[derive(Debug)]
pub(crate) struct Launched(Child);

/// Starts a program with our standard input and output.
pub(crate) fn launch(program: &OsString, arguments: &[OsString]) -> io::Result<Launched> {
    Command::new(program).args(arguments).spawn().map(Launched)
}

impl Launched {
    pub(crate) fn pid(&self) -> ProcessId {
        ProcessId(self.0.id())
    }

    pub(crate) fn signal(&self, signal: i32) {
        // SAFETY: the child was not waited for, so its number is still its own.
        unsafe { libc::kill(self.0.id() as libc::pid_t, signal) };
    }

    pub(crate) fn kill(mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    /// Waits for the end, unless its status is known.
    pub(crate) fn wait(mut self, known: Option<i32>) -> Option<ExitStatus> {
        match known {
            Some(status) => Some(ExitStatus::from_raw(status)),
            None => self.0.wait().ok(),
        }
    }
}

/// The signal that ended a program.
pub(crate) fn ending_signal(status: ExitStatus) -> Option<i32> {
    status.signal()
}
