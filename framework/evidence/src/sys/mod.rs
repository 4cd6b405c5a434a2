//! The operating system, one twin per platform exporting the same functions.
//!
//! Mechanism only: how a process is stopped, read and dumped. What it means is decided elsewhere.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux as system;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
use windows as system;

pub(crate) use system::{
    KNOWS_CORES, Standstill, capture, capture_and_hold, find_sources, memory_map_text, open_module,
    threads_of, tracer_of, write_core, write_dump,
};

pub use system::read_memory;
