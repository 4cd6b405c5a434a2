//! Windows: every file with the right name can be executed, and there is no signal to end in order.

use std::io;
use std::path::Path;
use std::process::{Child, Command};

/// Lets a file be executed.
pub(crate) fn make_executable(_file: &Path) -> io::Result<()> {
    Ok(())
}

/// Folders do not change places in one step here.
pub(crate) fn exchange(_one: &Path, _other: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether there is a process with this number: not asked, so that nothing is taken from one that is at work.
pub(crate) fn is_alive(_process: u32) -> bool {
    true
}

/// Leaves a process where it is: Ctrl-C of the console is how it is asked to end.
pub(crate) fn set_apart(command: &mut Command) -> &mut Command {
    command
}

/// Asks a process that we started to end in order: Ctrl-C reaches all processes of the console, so it was asked already.
pub(crate) fn ask_to_end(_child: &Child) {}
