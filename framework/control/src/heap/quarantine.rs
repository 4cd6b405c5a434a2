//! Freed blocks that are kept back for a while, filled with a pattern: pure bookkeeping, first in first out.
//!
//! A block that comes in a second time was freed twice; one whose pattern is broken was written after it was freed. What
//! is read from one is a value that no program expects, and as a pointer an address that no process has.

use super::guard::PATTERN;
use crate::runtime::Whereabouts;

/// Blocks kept at most, and their bytes: enough for what a small test frees in all its life, and little beside what a
/// large one uses.
pub(super) const BLOCKS: usize = 1024;
pub(super) const BYTES: usize = 1 << 20;

/// One freed block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Freed {
    /// Where it is, and its length, a multiple of a word.
    pub(super) at: usize,
    pub(super) len: usize,
    /// Who freed it, and when.
    pub(super) by: Whereabouts,
}

impl Freed {
    /// The first word that no longer has the pattern, as an offset.
    ///
    /// # Safety
    /// The block is readable.
    pub(super) unsafe fn broken_at(&self) -> Option<usize> {
        // SAFETY: by the caller's promise.
        let words = unsafe { core::slice::from_raw_parts(self.at as *const u64, self.len / 8) };
        words.iter().position(|&word| word != PATTERN).map(|word| word * 8)
    }
}

/// The blocks.
#[derive(Debug)]
pub(super) struct Quarantine {
    ring: [Freed; BLOCKS],
    first: usize,
    len: usize,
    bytes: usize,
    /// Where the next look begins.
    look: usize,
}

impl Quarantine {
    pub(super) const EMPTY: Quarantine = Quarantine {
        ring: [Freed { at: 0, len: 0, by: Whereabouts::UNKNOWN }; BLOCKS],
        first: 0,
        len: 0,
        bytes: 0,
        look: 0,
    };

    /// The block at this address, if it is here.
    pub(super) fn find(&self, at: usize) -> Option<Freed> {
        (0..self.len).map(|place| self.get(place)).find(|freed| freed.at == at)
    }

    /// The oldest block, when it has to go so that one of `len` bytes has room.
    pub(super) fn make_room(&mut self, len: usize) -> Option<Freed> {
        if self.len == 0 || (self.len < BLOCKS && self.bytes + len <= BYTES) {
            return None;
        }
        let oldest = self.get(0);
        self.first = (self.first + 1) % BLOCKS;
        self.len -= 1;
        self.bytes -= oldest.len;
        Some(oldest)
    }

    /// Takes a block in; there is room.
    pub(super) fn add(&mut self, freed: Freed) {
        let place = (self.first + self.len) % BLOCKS;
        self.ring[place] = freed;
        self.len += 1;
        self.bytes += freed.len;
    }

    /// Up to `count` blocks, going round.
    pub(super) fn some(&mut self, count: usize) -> impl Iterator<Item = Freed> + '_ {
        let (from, len) = (self.look, self.len);
        self.look = self.look.wrapping_add(count.min(len));
        (0..count.min(len)).map(move |index| self.get(from.wrapping_add(index) % len))
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    fn get(&self, place: usize) -> Freed {
        self.ring[(self.first + place) % BLOCKS]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn freed(at: usize, len: usize) -> Freed {
        Freed { at, len, by: Whereabouts::UNKNOWN }
    }

    #[test]
    fn the_oldest_goes_first_by_number_and_by_bytes() {
        let mut all = Box::new(Quarantine::EMPTY);
        for at in 1..=BLOCKS {
            assert_eq!(all.make_room(16), None);
            all.add(freed(at, 16));
        }
        assert_eq!(all.make_room(16), Some(freed(1, 16)));
        assert_eq!((all.find(1), all.find(2)), (None, Some(freed(2, 16))));
        all.add(freed(5000, 16));
        while all.make_room(BYTES).is_some() {}
        assert_eq!((all.len(), all.bytes), (0, 0));
    }

    #[test]
    fn every_block_is_looked_at_in_turn() {
        let mut all = Box::new(Quarantine::EMPTY);
        assert_eq!(all.some(3).count(), 0);
        for at in 1..=5 {
            all.add(freed(at, 16));
        }
        let mut seen: Vec<usize> = all.some(3).map(|freed| freed.at).collect();
        seen.extend(all.some(2).map(|freed| freed.at));
        assert_eq!(seen, [1, 2, 3, 4, 5]);
        assert_eq!(all.some(99).count(), 5);
    }

    #[test]
    fn a_broken_pattern_is_found() {
        let mut memory = [PATTERN; 8];
        let words = memory.as_mut_ptr();
        let block = freed(words as usize, 64);
        // SAFETY: the array outlives the looks, and the fifth word lies in it.
        unsafe {
            assert_eq!(block.broken_at(), None);
            words.add(5).write(1);
            assert_eq!(block.broken_at(), Some(40));
        }
    }
}
