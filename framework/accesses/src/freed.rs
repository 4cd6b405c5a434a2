//! Blocks that were given back, until their memory is given out again: who touches one meets whoever freed it. Pure.
//!
//! A free writes to all of a block, which may be long, and to memory that nobody has touched. So it is remembered once for
//! the block and not for every word of it.

use std::collections::BTreeMap;

/// Blocks that are remembered; of what is freed when there are so many, only what happened before is known.
const MOST_BLOCKS: usize = 1 << 18;

/// Blocks that were freed, each with what is to be known of that.
#[derive(Debug)]
pub(crate) struct Freed<T> {
    blocks: BTreeMap<usize, (usize, T)>,
}

impl<T> Default for Freed<T> {
    fn default() -> Freed<T> {
        Freed { blocks: BTreeMap::new() }
    }
}

impl<T: Copy> Freed<T> {
    /// Forgets all: a new run begins.
    pub(crate) fn clear(&mut self) {
        self.blocks.clear();
    }

    /// A block was given back.
    pub(crate) fn add(&mut self, start: usize, bytes: usize, what: T) {
        self.forget(start, bytes);
        if self.blocks.len() < MOST_BLOCKS {
            self.blocks.insert(start, (start.saturating_add(bytes.max(1)), what));
        }
    }

    /// The memory is somebody's again: no block that overlaps it is a freed one.
    pub(crate) fn forget(&mut self, start: usize, bytes: usize) {
        let end = start.saturating_add(bytes.max(1));
        while let Some((&first, &(last, _))) = self.blocks.range(..end).next_back() {
            if last <= start {
                break;
            }
            self.blocks.remove(&first);
        }
    }

    /// What is known of the freed block at an address.
    #[inline]
    pub(crate) fn at(&self, address: usize) -> Option<T> {
        if self.blocks.is_empty() {
            return None;
        }
        let (_, &(end, what)) = self.blocks.range(..=address).next_back()?;
        (address < end).then_some(what)
    }
}

/// The words of a block, of 1 << `grain` bytes each, that are in a table of so many words: by their number if the block is
/// short, otherwise all of the table that lie in it.
pub(crate) fn words_of(
    (start, bytes): (usize, usize),
    grain: u32,
    known: usize,
    all: impl Iterator<Item = usize>,
) -> Vec<usize> {
    let words = start >> grain..=(start.saturating_add(bytes.max(1)) - 1) >> grain;
    if words.end() - words.start() < known {
        words.collect()
    } else {
        let mut inside: Vec<usize> = all.filter(|index| words.contains(index)).collect();
        // The order of a hash table is nobody's to rely on.
        inside.sort_unstable();
        inside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_free_until_its_memory_is_given_out_again() {
        let mut freed = Freed::default();
        freed.add(0x100, 64, 'a');
        freed.add(0x140, 64, 'b');
        assert_eq!((freed.at(0x100), freed.at(0x13f), freed.at(0x140)), (Some('a'), Some('a'), Some('b')));
        assert_eq!((freed.at(0xff), freed.at(0x180)), (None, None));
        freed.forget(0x120, 8);
        assert_eq!((freed.at(0x100), freed.at(0x140)), (None, Some('b')));
        freed.add(0x130, 0x100, 'c');
        assert_eq!((freed.at(0x140), freed.at(0x22f)), (Some('c'), Some('c')));
        freed.clear();
        assert_eq!(freed.at(0x140), None);
    }

    #[test]
    fn words_are_found_by_number_or_in_the_table() {
        let all = || [5, 1, 9, 300].into_iter();
        assert_eq!(words_of((8, 16), 3, 4, all()), [1, 2]);
        assert_eq!(words_of((8, 800), 3, 4, all()), [1, 5, 9]);
    }
}
