//! Windows: a mapped file cannot be cut off.

/// Nothing to survive.
pub(crate) fn survive_cut_offs() {}

/// None.
pub(crate) fn cut_offs() -> u64 {
    0
}
