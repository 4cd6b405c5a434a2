//! Windows: SuspendThread and GetThreadContext to stop and read registers, Toolhelp for what is there.

mod capture;
mod core;
mod dump;
mod memory;
mod process;
mod source;
mod stopped;
mod waits;

pub(crate) use capture::{Standstill, capture, capture_and_hold};
pub(crate) use core::{KNOWS_CORES, write_core};
pub(crate) use dump::write_dump;
pub use memory::read_memory;
pub(crate) use process::{threads_of, tracer_of};
pub(crate) use source::{find_sources, memory_map_text, open_module};
