//! What reports have to know of the system that they are read on. Twins per system.

#[cfg(unix)]
mod unix;
#[cfg(unix)]
pub(crate) use unix::*;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub(crate) use windows::*;

/// Whose rules a word follows.
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "each system has one of them")]
pub(crate) enum Shell {
    /// Every shell that knows POSIX.
    Posix,
    /// The command line of Windows.
    Cmd,
}
