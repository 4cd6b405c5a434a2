//! What a run leaves in the region to be repeated: its schedule in stretches, and what was said about it in notes.

/// Consecutive choices that fell on one thread.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The thread.
    pub thread: u32,
    /// The code of the event it did first.
    pub first: u32,
    /// How many choices.
    pub steps: u64,
}

/// One sentence of the conversation between scheduler and strategy, in the words of the side that writes.
pub type Note = [u64; 4];
