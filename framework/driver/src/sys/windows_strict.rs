//! Windows: no control library yet, so there is no memory that a strict host could share with us.

use std::io;
use std::process::Command;

use waylay_schedule::{Handover, RunParameters, Schedule};

use crate::campaign::strict::{RunTotals, Verdict};
use crate::config::Strict;

/// The region of one host: there is no value of this type.
#[derive(Debug)]
pub(crate) enum ControlRegion {}

impl ControlRegion {
    /// Always refuses.
    pub(crate) fn prepare(
        _strict: &Strict,
        _seed: u64,
        _parameters: &RunParameters,
    ) -> io::Result<ControlRegion> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "strict mode is not there on Windows yet"))
    }

    /// The descriptor that the host inherits.
    pub(crate) fn descriptor(&self) -> i32 {
        match *self {}
    }

    /// Tells the host where the region is.
    pub(crate) fn announce(&self, _command: &mut Command) {
        match *self {}
    }

    /// What the library found out itself.
    pub(crate) fn verdict(&self) -> Option<Verdict> {
        match *self {}
    }

    /// What the library said in words.
    pub(crate) fn text(&self) -> String {
        match *self {}
    }

    /// The schedule of the last run, as far as it came.
    pub(crate) fn schedule(&self) -> Schedule {
        match *self {}
    }

    /// Whether the schedule is incomplete.
    pub(crate) fn is_cut(&self) -> bool {
        match *self {}
    }

    /// Whether something outside the library's control took part in the last run.
    pub(crate) fn is_partly_controlled(&self) -> bool {
        match *self {}
    }

    /// What the process left for the next one.
    pub(crate) fn handover(&self) -> Option<Handover> {
        match *self {}
    }

    /// The sums over all runs of the process.
    pub(crate) fn totals(&self) -> RunTotals {
        match *self {}
    }
}
