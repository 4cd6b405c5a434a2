//! How much room the parts of the region have.

use crate::sys;

/// Bytes for the parameters of a run, as JSON.
pub const PARAMETERS: usize = 1 << 20;
/// Bytes for what a run tells about itself.
pub const ACCOUNT: usize = 1 << 18;
/// Entries of a schedule, recorded or to be followed.
pub const STRETCHES: usize = sys::STRETCHES;
/// Sentences of the conversation with the strategy that are kept.
pub const NOTES: usize = sys::NOTES;
