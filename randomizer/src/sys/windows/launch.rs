//! A program that we start ourselves.

use std::ffi::OsString;
use std::io;
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

    /// Console events reach the child by themselves, so there is nothing to hand on.
    pub(crate) fn signal(&self, _signal: i32) {}

    pub(crate) fn kill(mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    /// Waits for the end.
    pub(crate) fn wait(mut self, _known: Option<i32>) -> Option<ExitStatus> {
        self.0.wait().ok()
    }
}

/// Windows has no signals: an exception is an exit code.
pub(crate) fn ending_signal(_status: ExitStatus) -> Option<i32> {
    None
}
