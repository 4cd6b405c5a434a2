//! What the driver needs of the operating system to start and end processes. Twins per system.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod linux_cage;
#[cfg(target_os = "linux")]
mod linux_terminal;
#[cfg(target_os = "linux")]
pub(crate) use linux::*;
#[cfg(target_os = "linux")]
pub(crate) use linux_cage::*;
#[cfg(target_os = "linux")]
pub(crate) use linux_terminal::*;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
mod windows_terminal;
#[cfg(windows)]
pub(crate) use windows::*;
#[cfg(windows)]
pub(crate) use windows_terminal::*;
