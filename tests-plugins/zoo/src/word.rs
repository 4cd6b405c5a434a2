//! A word that threads share; every access is a step of strict mode.

use std::sync::atomic::AtomicU64;

#[cfg(reported)]
unsafe extern "C" {
    safe fn zoo_read(word: &AtomicU64) -> u64;
    safe fn zoo_write(word: &AtomicU64, value: u64);
    safe fn zoo_add(word: &AtomicU64, value: u64) -> u64;
}
#[cfg(not(reported))]
#[path = "steps.rs"]
mod steps;
#[cfg(not(reported))]
use steps::{zoo_add, zoo_read, zoo_write};

/// A shared word.
#[derive(Default)]
pub(crate) struct Word(AtomicU64);

impl Word {
    pub(crate) fn new(value: u64) -> Word {
        Word(AtomicU64::new(value))
    }

    pub(crate) fn get(&self) -> u64 {
        zoo_read(&self.0)
    }

    pub(crate) fn set(&self, value: u64) {
        zoo_write(&self.0, value);
    }

    /// Adds at once; returns what was there.
    pub(crate) fn add(&self, value: u64) -> u64 {
        zoo_add(&self.0, value)
    }

    /// Work that has nothing to do with the bug.
    pub(crate) fn pass_time(&self, steps: u64) {
        (0..steps).for_each(|step| self.set(step));
    }
}
