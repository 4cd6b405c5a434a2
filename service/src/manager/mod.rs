//! The system's own manager of services: it starts the service with the machine, ends it in order, and starts it again
//! when it dies or stands still. Twins per system.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub use linux::{Watchdog, install, run, status, uninstall};

#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub use windows::{Watchdog, install, run, status, uninstall};

use std::path::{Path, PathBuf};

/// What a service does under its manager; its result is the service's exit code.
pub type Work = Box<dyn FnOnce() -> u32 + Send>;

/// Why the manager did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum ManagerError {
    /// A file of the service cannot be written or removed.
    #[error("{}: {source}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The manager refused.
    #[error("{0}")]
    Refused(String),
}

/// What is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Name of the service.
    pub name: String,
    /// The command.
    pub executable: PathBuf,
    /// Its configuration.
    pub config: PathBuf,
    /// The folder in which it runs: relative paths of the configuration begin there.
    pub folder: PathBuf,
    /// For this user alone, without the rights of an administrator; systemd only.
    pub user: bool,
}

/// Only letters, digits, `-` and `_`: it becomes part of a file's name and of commands.
pub fn check_name(name: &str) -> Result<(), ManagerError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) || name.starts_with('-') {
        return Err(ManagerError::Refused(format!(
            "`{name}` is no name for a service: use letters, digits, - and _"
        )));
    }
    Ok(())
}

#[allow(dead_code, reason = "one of the twins does without")]
fn at(path: &Path) -> impl FnOnce(std::io::Error) -> ManagerError {
    let path = path.to_owned();
    move |source| ManagerError::File { path, source }
}
