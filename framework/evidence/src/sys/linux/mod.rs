//! Linux: ptrace to stop and read registers, `/proc` for everything the kernel tells without stopping.

mod capture;
mod core;
mod core_file;
mod dump;
mod image;
mod memory;
mod procfs;
mod source;
mod standstill;
mod tracee;
mod waits;

pub(crate) use capture::{capture, capture_and_hold};
pub(crate) use core::{KNOWS_CORES, write_core};
pub(crate) use dump::write_dump;
pub use memory::read_memory;
pub(crate) use procfs::{memory_map_text, threads_of, tracer_of};
pub(crate) use source::{find_sources, open_module};
pub(crate) use standstill::Standstill;
