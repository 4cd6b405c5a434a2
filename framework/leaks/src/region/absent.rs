//! Where no library is loaded before the host: sampled heap accounting is not there, and the type says so by having no
//! value. Growth of memory, handles and threads is still seen, through [`crate::usage`].

use super::layout::Region;
use super::snapshot::HeapSnapshot;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// How the host would sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sampling {
    /// Mean bytes between samples.
    pub period: u64,
    /// Start of the random numbers.
    pub seed: Option<u64>,
}

/// The region could not be created.
#[derive(Debug, thiserror::Error)]
pub enum RegionError {
    /// Never, on this system.
    #[error(
        "sampled heap accounting is not there on this system; growth of the whole process is watched instead"
    )]
    Absent,
}

/// No region: there is no value of this type.
#[derive(Debug)]
pub enum SharedRegion {}

impl SharedRegion {
    /// Always refuses.
    ///
    /// # Errors
    /// [`RegionError::Absent`].
    pub fn create() -> Result<SharedRegion, RegionError> {
        Err(RegionError::Absent)
    }

    /// The mapped region.
    pub fn region(&self) -> &Region {
        match *self {}
    }

    /// Everything alive now.
    pub fn snapshot(&self) -> HeapSnapshot {
        match *self {}
    }

    /// Makes `command` start with heap accounting on.
    pub fn attach(&self, _command: &mut Command, _library: &Path, _sampling: Sampling) {
        match *self {}
    }
}

/// Nothing is loaded first into a process of this system, and the driver finds no library that wanted to be.
pub fn preload(_command: &mut Command, _library: &Path) {}

/// The clock births would be stamped with.
pub fn monotonic_now() -> Duration {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed()
}
