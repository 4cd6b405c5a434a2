//! Windows: the command line.

use super::Shell;

/// Where people copy commands to.
pub(crate) const SHELL: Shell = Shell::Cmd;
