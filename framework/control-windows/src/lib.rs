//! Strict mode on Windows: a library inside host or program that lets one thread run at a time.
//!
//! The twin of `waylay-control`, with the same scheduler (`waylay-scheduler`) and the same region. Threads are kernel
//! threads on one processor that hand a baton on. The rooms, from the mechanism up:
//!
//! - `sys`, `me`: system calls and identity of the library's own
//! - `runtime`: carries choices out
//! - `interpose`: the functions of Windows that become steps, one file per family, and how they get into import tables
//! - `access`: accesses to memory that a compiler was asked to report
//! - `patch`: instructions that are replaced where no compiler was asked
//! - `watch`: what is known about the run's accesses; what they mean is decided by `waylay-accesses`
//! - `entry`: what host and driver call by name
//!
//! Nothing is linked against this crate. As a dependency it only makes Cargo build the dynamic library, which is loaded by
//! name: by a host that makes schedules itself, or by the first instructions of a program (`waylay explore`).

#![cfg(windows)]

mod access;
mod entry;
mod interpose;
mod me;
mod patch;
mod runtime;
mod sys;
mod watch;
