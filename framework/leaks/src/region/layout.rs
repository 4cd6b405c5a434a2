//! The memory itself: fixed sizes, atomics only, versioned.
//!
//! Responsible for where things lie, not for the order in which they are written (see `ledger`) or what
//! they mean to a reader (see `snapshot`). Any change here changes [`VERSION`].

use std::sync::atomic::{AtomicU32, AtomicU64};

/// "WAYHEAP" and a zero, little-endian: what a formatted region begins with.
pub const MAGIC: u64 = u64::from_le_bytes(*b"WAYHEAP\0");

/// The layout described by this file.
pub const VERSION: u32 = 1;

/// Live samples the region can hold. At the default period of 512 KiB this is a heap of 32 GiB, at 16 KiB
/// (a suspect on its own) 1 GiB. Untouched slots cost no memory: the memfd is sparse.
pub const SAMPLES: usize = 1 << 16;

/// Sample slots that are searched together. Eight addresses are one cache line, and two lines are all
/// that a `free` looks at.
pub const BUCKET: usize = 8;

/// Distinct (tag, call stack) pairs the region can hold.
pub const SITES: usize = 1 << 14;

/// Return addresses kept per call stack, innermost first.
pub const FRAMES: usize = 32;

/// Classes of the age at which samples of a site were freed. Class 0 is below 2^20 ns (about a
/// millisecond), class k from 2^(19+k) ns to twice that, the last one everything above (from about 1.2 hours).
pub const AGE_CLASSES: usize = 24;

/// log2 of the nanoseconds at which age class 1 begins.
pub const AGE_SHIFT: u32 = 20;

/// A slot of [`Region::addresses`] that holds nothing.
pub const VACANT: u64 = 0;

/// A slot that is being filled. No allocation has this address.
pub const RESERVED: u64 = 1;

/// Set in [`Site::depth`] once the frames are complete.
pub const PUBLISHED: u32 = 1 << 31;

/// Set in [`Site::depth`] when the stack was deeper than [`FRAMES`].
pub const TRUNCATED: u32 = 1 << 30;

/// What the driver writes first and the library counts in.
#[repr(C, align(64))]
pub struct Header {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// [`VERSION`].
    pub version: AtomicU32,
    /// Process that writes; zero until a library has claimed the region. One region, one writer.
    pub owner: AtomicU32,
    /// Size of the whole region in bytes, a second guard against a layout from another build.
    pub bytes: AtomicU64,
    /// Mean bytes between samples, set by the owner.
    pub period: AtomicU64,
    /// When the owner claimed it, nanoseconds of CLOCK_MONOTONIC.
    pub started: AtomicU64,
    /// Birth number of the next sample; unique, never zero once claimed.
    pub births: AtomicU64,
    /// Samples freed again.
    pub deaths: AtomicU64,
    /// Samples that found no free slot.
    pub dropped_samples: AtomicU64,
    /// What the dropped samples stand for, in bytes.
    pub dropped_bytes: AtomicU64,
    /// Samples whose site found no free place; they are kept with [`super::SiteId::UNKNOWN`].
    pub dropped_sites: AtomicU64,
}

/// One live sample, except for its address.
#[repr(C)]
pub struct Record {
    /// Unique birth number; written first and read twice.
    pub birth: AtomicU64,
    /// Birth time, nanoseconds of CLOCK_MONOTONIC.
    pub born: AtomicU64,
    /// Bytes asked for.
    pub size: AtomicU64,
    /// Bytes this sample stands for (see [`super::weight`]).
    pub weight: AtomicU64,
    /// Place in [`Region::sites`].
    pub site: AtomicU32,
    /// The tag of the allocating thread, kept here too for samples without a site.
    pub tag: AtomicU32,
}

/// One (tag, call stack) pair and what became of its samples.
#[repr(C, align(64))]
pub struct Site {
    /// Hash of tag and frames, zero while vacant.
    pub key: AtomicU64,
    /// [`PUBLISHED`], [`TRUNCATED`] and the number of frames.
    pub depth: AtomicU32,
    /// Whose memory.
    pub tag: AtomicU32,
    /// Samples taken here.
    pub allocated: AtomicU64,
    /// What they stand for, in bytes.
    pub allocated_bytes: AtomicU64,
    /// Samples freed again.
    pub freed: AtomicU64,
    /// What those stood for, in bytes.
    pub freed_bytes: AtomicU64,
    /// Freed samples by age at their death.
    pub deaths: [AtomicU32; AGE_CLASSES],
    /// Return addresses, innermost first. A symboliser subtracts one to land inside the call.
    pub frames: [AtomicU64; FRAMES],
}

/// The whole region.
#[repr(C, align(4096))]
pub struct Region {
    /// Versions, settings, counters.
    pub header: Header,
    /// Addresses of live samples, in buckets of [`BUCKET`]; [`VACANT`] and [`RESERVED`] are no addresses.
    pub addresses: [AtomicU64; SAMPLES],
    /// What belongs to the address of the same index.
    pub records: [Record; SAMPLES],
    /// Call stacks.
    pub sites: [Site; SITES],
}

/// Bytes of a region; the memfd has exactly this size.
pub const REGION_BYTES: usize = size_of::<Region>();

impl Region {
    /// A region on the heap of this process, formatted: for tests and simulations.
    pub fn boxed() -> Box<Region> {
        let layout = std::alloc::Layout::new::<Region>();
        // SAFETY: the layout is not empty, and all-zero bytes are a valid `Region` because every field is
        // an atomic integer; a null result ends in `handle_alloc_error`.
        let region = unsafe {
            let bytes = std::alloc::alloc_zeroed(layout).cast::<Region>();
            if bytes.is_null() {
                std::alloc::handle_alloc_error(layout);
            }
            Box::from_raw(bytes)
        };
        region.format();
        region
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    /// The numbers a library built yesterday relies on. If this fails, change `VERSION`, then this test.
    #[test]
    fn layout_of_version_1() {
        assert_eq!(VERSION, 1);
        assert_eq!(offset_of!(Region, addresses), 128);
        assert_eq!(offset_of!(Region, records), 128 + SAMPLES * 8);
        assert_eq!(size_of::<Record>(), 40);
        assert_eq!(offset_of!(Region, sites) % 64, 0);
        assert_eq!(offset_of!(Site, frames), 144);
        assert_eq!(size_of::<Site>(), 448);
        assert_eq!(REGION_BYTES % 4096, 0);
    }
}
