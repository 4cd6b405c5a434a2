//! Shells that know POSIX.

use super::Shell;

/// Where people copy commands to.
pub(crate) const SHELL: Shell = Shell::Posix;
