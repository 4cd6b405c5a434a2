//! The shared region: which sampled allocations are alive, who made them, and how long others lived.
//!
//! One process writes (the host: the preload library in it, on Windows it itself), any number read, nobody waits for anybody.
//! The region outlives the writer, so it must make sense after `kill -9` at any instruction:
//!
//! - Every field is an atomic integer. There is no pointer, no lock and no length that a reader trusts.
//! - A *sample* is one live sampled allocation. Its address sits in a slot of [`Region::addresses`], the
//!   rest in the record of the same index. The address is written last and cleared first, so a slot with
//!   an address has a complete record; a reader checks address and birth again after reading (a sequence
//!   lock whose sequence is the sample's unique birth number).
//! - A *site* is a pair (tag, call stack). Sites are never removed, so a [`SiteId`] stays good. The key is
//!   a 64-bit hash; whoever finds the key without frames writes them again, with the same values, so a
//!   writer that died half-way leaves nothing that blocks.
//! - A full table drops the sample and counts it in the header. Nothing is lost silently.
//!
//! [`layout`] is the memory itself, [`ledger`] the writing side, [`countdown`] decides what is written where no preloaded
//! library does, [`snapshot`] is the reading side, [`shared`] the memfd or section that carries it from driver to host.

pub mod countdown;
pub mod layout;
pub mod ledger;
#[cfg(target_os = "linux")]
pub mod shared;
#[cfg(windows)]
#[path = "windows.rs"]
pub mod shared;
pub mod snapshot;

pub use layout::{AGE_CLASSES, FRAMES, Region, SAMPLES, SITES, VERSION};
pub use ledger::Sample;
pub use shared::{RegionError, Sampling, SharedRegion, monotonic_now, preload};
pub use snapshot::{Dropped, HeapSnapshot, LiveSample, SiteSnapshot, SiteStack};

/// Whose memory: the number the driver gave to a test. Zero is nobody's: the host's own, or untagged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(pub u32);

impl Tag {
    /// Memory that belongs to no test.
    pub const NONE: Tag = Tag(0);
}

/// A (tag, call stack) pair, by its place in the region's site table. Good as long as the region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SiteId(pub u32);

impl SiteId {
    /// The site of samples that found the site table full.
    pub const UNKNOWN: SiteId = SiteId(u32::MAX);
}

/// The estimate that one sampled allocation of `size` bytes stands for, in bytes.
///
/// With one sample point every `period` bytes on average, placed by a Poisson process, an allocation of
/// `size` bytes is hit with probability `1 - exp(-size / period)`. Dividing by that probability makes the
/// sum over samples an unbiased estimate of the bytes allocated.
pub fn weight(size: u64, period: u64) -> u64 {
    if size == 0 || period == 0 {
        return size;
    }
    let hit = -(-(size as f64) / period as f64).exp_m1();
    (size as f64 / hit).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_the_period_for_small_and_the_size_for_large() {
        assert_eq!(weight(1, 524_288), 524_288 + 1);
        assert_eq!(weight(16, 524_288), 524_288 + 8);
        assert_eq!(weight(1 << 30, 524_288), 1 << 30);
        assert_eq!(weight(0, 524_288), 0);
        assert_eq!(weight(100, 0), 100);
    }

    #[test]
    fn weight_times_probability_is_the_size() {
        for size in [1u64, 24, 4096, 65_536, 524_288, 3_000_000] {
            let hit = 1.0 - (-(size as f64) / 65_536.0).exp();
            let expected = weight(size, 65_536) as f64 * hit;
            assert!((expected - size as f64).abs() <= 1.0 + size as f64 * 1e-5, "{size}: {expected}");
        }
    }
}
