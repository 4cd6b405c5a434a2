//! A whole suite cannot be watched from outside here without holding it up: every case is looked at by itself.

use std::fs::File;
use std::io;
use std::process::Command;

use crate::suite::first_pass::{Census, Patience};

/// See its twin.
pub(crate) const MOST_OUTPUT: u64 = 64 << 20;

/// Nothing is known of any case.
pub(crate) fn census(
    _command: Command,
    _output: &File,
    _harness: bool,
    _patience: &Patience<'_>,
) -> io::Result<Option<Census>> {
    Ok(None)
}
