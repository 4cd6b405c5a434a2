//! What kind of memory an access is to: one place in the code may serve objects of every kind, of which few are shared. Pure.
//!
//! A block of the heap is told by the code that allocated it, and by whether the thread that accesses it is the one that did:
//! what threads make for themselves is mostly theirs alone, even where one function makes all of it. A global variable is
//! told by its address. All else is one kind.
//!
//! Kinds have to be the same in every run, so they are made of places in modules and not of addresses.

use std::collections::BTreeMap;

use waylay_control_protocol::Site;

/// Blocks that are remembered: of what is allocated when there are so many, nothing is known.
const MOST_BLOCKS: usize = 1 << 18;

#[derive(Clone, Copy, Debug)]
struct Block {
    end: usize,
    /// The code that allocated it, and the thread.
    site: u64,
    thread: u32,
}

/// The heap of a run.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    blocks: BTreeMap<usize, Block>,
}

impl Objects {
    /// Forgets all: a run begins.
    pub(crate) fn clear(&mut self) {
        self.blocks.clear();
    }

    /// Memory was given to a thread by code at this place.
    pub(crate) fn allocated(&mut self, start: usize, bytes: usize, site: Option<Site>, thread: u32) {
        let end = start.saturating_add(bytes.max(1));
        while let Some((&inside, _)) = self.blocks.range(start..end).next() {
            self.blocks.remove(&inside);
        }
        if self.blocks.len() < MOST_BLOCKS {
            self.blocks.insert(start, Block { end, site: site.map_or(0, |site| site.0), thread });
        }
    }

    /// By how many bytes a block grows that is to have this length; none if it does not, or is not known.
    pub(crate) fn growth(&self, start: usize, bytes: usize) -> Option<usize> {
        let end = self.blocks.get(&start)?.end;
        start.saturating_add(bytes).checked_sub(end).filter(|&more| more > 0)
    }

    /// The length of a block.
    pub(crate) fn length(&self, start: usize) -> Option<usize> {
        Some(self.blocks.get(&start)?.end - start)
    }

    /// A block has another length now.
    pub(crate) fn resized(&mut self, start: usize, bytes: usize) {
        if let Some(block) = self.blocks.get_mut(&start) {
            block.end = start.saturating_add(bytes.max(1));
        }
    }

    /// The kind of what code at `site` accesses on behalf of `thread`. `global` says which global variable is there.
    pub(crate) fn kind(
        &self,
        site: Site,
        address: usize,
        thread: u32,
        global: impl FnOnce() -> Option<Site>,
    ) -> Site {
        let block = self.blocks.range(..=address).next_back().map(|(_, block)| block);
        let of = match block.filter(|block| address < block.end) {
            Some(block) => mix(block.site, 1 + u64::from(block.thread == thread)),
            None => global().map_or(3, |global| mix(global.0, 4)),
        };
        Site::of_kind(mix(site.0, of))
    }
}

/// The finaliser of splitmix64 over both.
fn mix(one: u64, other: u64) -> u64 {
    let mut word = one.wrapping_add(other.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: Site = Site(7 << 32 | 100);

    fn kind(objects: &Objects, address: usize, thread: u32) -> Site {
        objects.kind(CODE, address, thread, || (address < 0x1000).then_some(Site(address as u64)))
    }

    #[test]
    fn what_a_thread_made_for_itself_is_another_kind_than_what_it_was_given() {
        let mut objects = Objects::default();
        for (start, thread) in [(0x10_000, 0), (0x20_000, 1), (0x30_000, 2)] {
            objects.allocated(start, 64, Some(Site(9)), thread);
        }
        assert_eq!(kind(&objects, 0x20_010, 1), kind(&objects, 0x30_020, 2));
        assert_eq!(kind(&objects, 0x10_010, 1), kind(&objects, 0x10_010, 2));
        assert_ne!(kind(&objects, 0x20_010, 1), kind(&objects, 0x10_010, 1));
        assert_ne!(kind(&objects, 0x20_010, 1), kind(&objects, 0x20_040, 1), "behind the block");
        assert!(kind(&objects, 0x20_010, 1).is_kind() && !CODE.is_kind());
    }

    #[test]
    fn blocks_are_told_by_who_allocates_and_globals_by_their_place() {
        let mut objects = Objects::default();
        objects.allocated(0x10_000, 64, Some(Site(9)), 0);
        let before = kind(&objects, 0x10_000, 0);
        objects.allocated(0x0f_ff0, 32, Some(Site(10)), 0);
        assert_ne!(kind(&objects, 0x10_000, 0), before, "the memory has another block now");
        assert_eq!((objects.growth(0x0f_ff0, 8), objects.growth(0x0f_ff0, 40)), (None, Some(8)));
        objects.resized(0x0f_ff0, 8);
        assert_eq!(kind(&objects, 0x10_000, 0), kind(&objects, 0x50_000, 0), "which has become shorter");
        assert_ne!(kind(&objects, 0x100, 0), kind(&objects, 0x108, 0));
        assert_eq!(kind(&objects, 0x100, 0), kind(&objects, 0x100, 5));
        objects.clear();
        assert_eq!(kind(&objects, 0x0f_ff0, 0), kind(&objects, 0x50_000, 0));
    }
}
