//! What differs between systems: which files are programs, how they are started and held, and how they end. Twins per system.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(crate) use linux::*;
#[cfg(target_os = "linux")]
pub use linux::{ServerFailure, debugger};

#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub(crate) use windows::*;
#[cfg(windows)]
pub use windows::{ServerFailure, debugger};

/// How a process was ended against its will.
pub(crate) struct Death {
    /// The signal or exception.
    pub(crate) name: String,
    /// Whether it ended itself that way.
    pub(crate) is_abort: bool,
}
