//! Runs from a snapshot, many at a time in one process: what is ordered and what comes back. The process is the system's
//! part: `sys::restored`.

use waylay_control_protocol::{RecordCopy, Settings};

use crate::server::RunError;
pub use crate::sys::restored::Restored;

/// A run that is ordered: settings, and the parameters as text.
pub type Order = (Settings, String);

/// What came of an ordered run.
#[derive(Debug)]
pub enum Answer<'a> {
    /// It was made.
    Made(&'a RecordCopy),
    /// It was not made here, and why.
    GivenBack(&'a str),
    /// It, or one before it, wrote over the memory that is shared with us, and what shows that.
    Overwrote(&'a str),
}

/// Why a process makes no runs from a snapshot.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NoSnapshot(pub(crate) String);

impl From<RunError> for NoSnapshot {
    fn from(error: RunError) -> NoSnapshot {
        NoSnapshot(error.to_string())
    }
}
