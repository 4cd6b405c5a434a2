//! What the host needs of the operating system. Twins per system.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod linux_strict;
#[cfg(target_os = "linux")]
pub(crate) use linux::*;
#[cfg(target_os = "linux")]
pub(crate) use linux_strict::*;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
mod windows_calls;
#[cfg(windows)]
mod windows_heap;
#[cfg(windows)]
mod windows_image;
#[cfg(windows)]
mod windows_imports;
#[cfg(windows)]
mod windows_strict;
#[cfg(windows)]
mod windows_throws;
#[cfg(windows)]
pub(crate) use windows::*;
#[cfg(windows)]
pub(crate) use windows_image::{missing_libraries, why_not_loadable};
#[cfg(windows)]
pub(crate) use windows_strict::*;
#[cfg(windows)]
pub(crate) use windows_throws::thrown;
