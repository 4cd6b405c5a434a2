//! Linux: permissions of files, and signals.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command};

/// Lets a file be executed.
pub(crate) fn make_executable(file: &Path) -> io::Result<()> {
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755))
}

/// Asks a process that we started to end in order.
pub(crate) fn ask_to_end(child: &Child) {
    // Not through a library call of ours: the standard library sends no signals but the one that kills.
    let _ = Command::new("kill").arg("-TERM").arg(child.id().to_string()).status();
}
