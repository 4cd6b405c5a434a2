//! What the operating system says about a process: resident memory, open descriptors, threads.
//!
//! Read from outside, cheap enough for once a second, and good for a process that is hung. What the
//! numbers mean is for [`crate::growth`] to say.

use std::collections::BTreeMap;
use std::io;

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod sys;
#[cfg(windows)]
#[path = "windows.rs"]
mod sys;

/// Descriptors whose targets are read; beyond that only the count grows. A target takes some microseconds,
/// so this many stay in the tens of milliseconds.
pub const DESCRIPTORS_NAMED: usize = 4096;

/// A thread of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadId(pub u32);

/// An open descriptor of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Descriptor(pub u32);

/// The process could not be read.
#[derive(Debug, thiserror::Error)]
pub enum UsageError {
    /// It does not exist (any more).
    #[error("process {pid} has ended")]
    Gone {
        /// The process asked for.
        pid: u32,
    },
    /// It exists, but the system does not let us look.
    #[error("cannot read the {what} of process {pid}; is it another user's?")]
    Unreadable {
        /// The process asked for.
        pid: u32,
        /// What was being read.
        what: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// One reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessUsage {
    /// Resident memory in bytes.
    pub resident: u64,
    /// Number of open descriptors, all of them.
    pub descriptor_count: u64,
    /// What the descriptors are, as the system names them (`/path`, `socket:[123]`, `anon_inode:…`); the
    /// first [`DESCRIPTORS_NAMED`] of them.
    pub descriptors: BTreeMap<Descriptor, String>,
    /// Threads and their names.
    pub threads: BTreeMap<ThreadId, String>,
}

impl ProcessUsage {
    /// Reads everything, names included. Descriptors and threads that vanish meanwhile are left out.
    pub fn read(pid: u32) -> Result<ProcessUsage, UsageError> {
        let (descriptor_count, descriptors) = sys::descriptors(pid)?;
        Ok(ProcessUsage {
            resident: sys::resident(pid)?,
            descriptor_count,
            descriptors,
            threads: sys::threads(pid)?,
        })
    }
}

/// One reading of the counts alone: about ten microseconds for a small process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageCounts {
    /// Resident memory in bytes.
    pub resident: u64,
    /// Open descriptors.
    pub descriptors: u64,
    /// Threads.
    pub threads: u64,
}

impl UsageCounts {
    /// Reads the counts of a process.
    pub fn read(pid: u32) -> Result<UsageCounts, UsageError> {
        Ok(UsageCounts {
            resident: sys::resident(pid)?,
            descriptors: sys::descriptor_count(pid)?,
            threads: sys::thread_count(pid)?,
        })
    }
}

impl From<&ProcessUsage> for UsageCounts {
    fn from(usage: &ProcessUsage) -> UsageCounts {
        UsageCounts {
            resident: usage.resident,
            descriptors: usage.descriptor_count,
            threads: usage.threads.len() as u64,
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
#[path = "tests.rs"]
mod tests;
