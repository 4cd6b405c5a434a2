//! Linux.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A command that makes a token that nobody guesses.
pub(crate) const MAKE_TOKEN: &str = "(umask 077; head -c 32 /dev/urandom | base64 > token)";

/// Whether nobody but its owner can read or change a file.
pub(crate) fn is_private(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 == 0)
}

/// Lets nobody but its owner read a file.
#[cfg(test)]
pub(crate) fn make_private(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).expect("a file of ours");
}

/// Lets other threads go first: those that run campaigns.
pub(crate) fn step_back() {
    // SAFETY: a plain call; 0 is this thread. When it is refused, nothing is lost but a little speed elsewhere.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 10) };
}
