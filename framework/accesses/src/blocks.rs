//! Heap blocks of a run, by where they lie: what a race is about is told by them. Pure.

use std::collections::BTreeMap;

/// Blocks that are remembered.
const MOST: usize = 1 << 18;

/// A heap block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) start: usize,
    pub(crate) bytes: usize,
    pub(crate) thread: u32,
    pub(crate) code: usize,
}

/// The blocks that the program has.
#[derive(Debug, Default)]
pub(crate) struct Blocks(BTreeMap<usize, Block>);

impl Blocks {
    pub(crate) fn add(&mut self, block: Block) {
        if self.0.len() < MOST {
            self.0.insert(block.start, block);
        }
    }

    /// No block begins in this memory.
    pub(crate) fn forget(&mut self, start: usize, bytes: usize) {
        let end = start.saturating_add(bytes.max(1));
        let inside: Vec<usize> = self.0.range(start..end).map(|(&start, _)| start).collect();
        for start in inside {
            self.0.remove(&start);
        }
    }

    /// A block has another length now.
    pub(crate) fn resize(&mut self, start: usize, bytes: usize) {
        if let Some(block) = self.0.get_mut(&start) {
            block.bytes = bytes;
        }
    }

    /// The block around an address.
    pub(crate) fn around(&self, address: usize) -> Option<Block> {
        let (_, &block) = self.0.range(..=address).next_back()?;
        (address - block.start < block.bytes).then_some(block)
    }
}
