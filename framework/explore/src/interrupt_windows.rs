//! Ctrl-C: the first is noted, so that what was found is written down; the second ends this process at once.

pub use waylay_driver::interrupt::{requested, watch};
