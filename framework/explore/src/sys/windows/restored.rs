//! Runs from a snapshot: there are none on Windows, where every run has a process of its own.

use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

use waylay_control_protocol::Settings;

use crate::program::Program;
use crate::recording::Conditions;
use crate::restored::{Answer, NoSnapshot, Order};
use crate::server::RunError;

/// The process: there is no value of this type.
#[derive(Debug)]
pub struct Restored(Infallible);

impl Restored {
    /// Always refuses.
    pub fn start(_: &Program, _: &Path, _: &Conditions) -> Result<Restored, RunError> {
        let source =
            std::io::Error::new(std::io::ErrorKind::Unsupported, "Windows has nothing to make one of");
        Err(RunError::System { what: "take a snapshot", source })
    }

    /// The settings of a run under the given conditions.
    pub fn settings(&mut self, _: &Conditions, _seed: u64, _run: u64) -> Settings {
        match self.0 {}
    }

    /// Gets ready for runs under these conditions.
    pub fn ready_for(&mut self, _: &Conditions) -> Result<(), RunError> {
        match self.0 {}
    }

    /// Whether the process was started or took its snapshot since the last time this was asked.
    pub fn was_fresh(&mut self) -> bool {
        match self.0 {}
    }

    /// Makes a run as the first of a new process.
    pub fn run_afresh(&mut self, _: &Order, _: impl FnMut(Answer<'_>)) -> Result<(), NoSnapshot> {
        match self.0 {}
    }

    /// Processor time that the process has used.
    pub(crate) fn spent(&self) -> Option<Duration> {
        match self.0 {}
    }

    /// Makes the ordered runs and tells what came of each, in order.
    pub fn run(&mut self, _: &[Order], _: impl FnMut(usize, Answer<'_>)) -> Result<(), NoSnapshot> {
        match self.0 {}
    }
}
