//! What a forked child must not have: which addresses may be sampled, and where the region is.
//!
//! The filter answers "may this address be a sampled one?" for every `free`, from one byte. It counts the
//! live samples that fall on each byte; a count that reaches the top stays there, which costs time but
//! never an answer.
//!
//! A byte stands for a whole stretch of addresses, so that the filter of a program's working set stays in
//! the nearest cache. The price is that neighbours of a sample are looked up in vain; they are one block in
//! two thousand at the default period.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicPtr, AtomicU8};
use waylay_leaks::region::Region;

/// Bytes of the filter. With the few hundred live samples of a heap of 100 MB at the default period, fewer
/// than one `free` in a hundred looks further than this.
const SLOTS: usize = 1 << 16;

/// Alone on its pages, so that the kernel can wipe them for a child. Pages have up to 64 KiB on aarch64.
#[repr(C)]
#[cfg_attr(target_arch = "aarch64", repr(align(65536)))]
#[cfg_attr(not(target_arch = "aarch64"), repr(align(4096)))]
pub(super) struct Wiped {
    filter: [AtomicU8; SLOTS],
    region: AtomicPtr<Region>,
}

/// Zero until accounting begins, and zero again in a child.
pub(super) static WIPED: Wiped = Wiped::new();

impl Wiped {
    const fn new() -> Wiped {
        Wiped { filter: [const { AtomicU8::new(0) }; SLOTS], region: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Asks the kernel to zero this memory in forked children. False when it will not.
    pub(super) fn wipe_on_fork(&'static self) -> bool {
        let start = std::ptr::from_ref(self).cast_mut().cast();
        // SAFETY: concerns the pages of this static alone (its size is a multiple of its alignment), and
        // zero is a valid value of every field.
        unsafe { libc::madvise(start, size_of::<Wiped>(), libc::MADV_WIPEONFORK) == 0 }
    }

    /// From now on samples go to `region`.
    pub(super) fn set_region(&self, region: &'static Region) {
        self.region.store(std::ptr::from_ref(region).cast_mut(), std::sync::atomic::Ordering::Release);
    }

    /// Where samples go, if anywhere.
    pub(super) fn region(&self) -> Option<&'static Region> {
        // SAFETY: null, or stored by `set_region` from a reference of static lifetime. A child in which
        // that mapping means nothing reads null.
        unsafe { self.region.load(Acquire).as_ref() }
    }

    /// Whether `address` may be that of a live sample.
    #[inline(always)]
    pub(super) fn may_hold(&self, address: usize) -> bool {
        self.filter[slot(address)].load(Relaxed) != 0
    }

    /// Counts a live sample.
    pub(super) fn add(&self, address: usize) {
        let _ = self.filter[slot(address)].fetch_update(AcqRel, Relaxed, |count| count.checked_add(1));
    }

    /// Takes back one [`Wiped::add`]. A count at the top has lost count and stays.
    pub(super) fn remove(&self, address: usize) {
        let less = |count: u8| if count == u8::MAX { None } else { count.checked_sub(1) };
        let _ = self.filter[slot(address)].fetch_update(AcqRel, Relaxed, less);
    }
}

/// log2 of the bytes of address space that share a slot.
const STRETCH: u32 = 8;

/// The higher bits are folded in because large blocks all begin at the same place within a page.
#[inline(always)]
fn slot(address: usize) -> usize {
    ((address >> STRETCH) ^ (address >> 24)) % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_may_be_held_until_it_is_removed() {
        let wiped = Box::new(Wiped::new());
        assert!(!wiped.may_hold(0x7f00_1230));
        wiped.add(0x7f00_1230);
        wiped.add(0x7f00_1230);
        wiped.remove(0x7f00_1230);
        assert!(wiped.may_hold(0x7f00_1230));
        wiped.remove(0x7f00_1230);
        wiped.remove(0x7f00_1230);
        assert!(!wiped.may_hold(0x7f00_1230));
    }

    #[test]
    fn a_count_at_the_top_never_says_no() {
        let wiped = Box::new(Wiped::new());
        for _ in 0..300 {
            wiped.add(0x10);
        }
        for _ in 0..300 {
            wiped.remove(0x10);
        }
        assert!(wiped.may_hold(0x10));
    }

    #[test]
    fn large_blocks_spread() {
        let slots: std::collections::BTreeSet<usize> =
            (0..256).map(|number| slot(0x7f12_3400_0010 + number * 0x10_1000)).collect();
        assert!(slots.len() > 200, "{}", slots.len());
    }

    #[test]
    fn it_fills_whole_pages() {
        assert_eq!(size_of::<Wiped>() % 4096, 0);
        assert!(WIPED.wipe_on_fork());
    }
}
