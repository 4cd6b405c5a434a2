//! Heap accounting of real processes: programs in C, C++ and Rust run under the preload library, and the
//! region they leave behind is compared with what they did.
//!
//! With a period of one byte every allocation above a few dozen bytes is sampled with its exact size as
//! weight, so most comparisons are exact. Where samples are few, the seed is fixed and the bound is 5.5
//! standard deviations (a false alarm in 2.6e7 seeds).

#![cfg(all(target_os = "linux", target_env = "gnu"))]

mod allocators;
mod detection;
mod estimates;
mod processes;
mod program;
mod tables;
