//! The command on Windows: plugins in Rust, C and C++ are loaded, their bugs are found, the evidence is whole, and nothing
//! is left behind.
#![cfg(windows)]

mod commands;
mod endings;
mod faults;
#[path = "../support/fields.rs"]
mod fields;
mod leaks;
mod place;
mod refusals;
mod strict;
#[path = "../support/windows.rs"]
mod system;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Under Wine every process costs much, and a test that waits for time to pass must not wait for the others: campaigns
/// that are measured by their time take turns.
pub(crate) fn in_turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
