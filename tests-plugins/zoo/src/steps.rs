//! Accesses to shared words that are steps of strict mode. Compiled by itself, with the pass of `waylay rustflags`: see
//! `build.rs`. Where there is no strict mode it is a module like any other.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::SeqCst;

/// Reads a word.
#[unsafe(no_mangle)]
pub extern "C" fn zoo_read(word: &AtomicU64) -> u64 {
    word.load(SeqCst)
}

/// Writes a word.
#[unsafe(no_mangle)]
pub extern "C" fn zoo_write(word: &AtomicU64, value: u64) {
    word.store(value, SeqCst);
}

/// Adds to a word at once; returns what was there.
#[unsafe(no_mangle)]
pub extern "C" fn zoo_add(word: &AtomicU64, value: u64) -> u64 {
    word.fetch_add(value, SeqCst)
}
