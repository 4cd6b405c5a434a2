//! Other tool chains than mingw have no POSIX threads.

/// Whether there are none.
#[allow(dead_code, reason = "the benchmark has no use for it")]
pub(crate) const IS_MISSING: bool = true;

#[allow(dead_code, reason = "the benchmark has no use for it")]
pub(crate) const CORRECT: [&str; 0] = [];

pub(crate) fn find(_: &str) -> Option<fn() -> bool> {
    None
}
