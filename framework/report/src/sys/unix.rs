//! Shells that know POSIX.

use crate::shell::Shell;

/// Where people copy commands to.
pub(crate) const SHELL: Shell = Shell::Posix;
