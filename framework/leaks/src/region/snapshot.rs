//! The reading side: what the driver makes of a region that another process is writing, has left half
//! written, or has scribbled over.
//!
//! Nothing read here is trusted: indices are checked, sums saturate, a record that changes while it is
//! read is skipped (it is being born or freed at this moment, so either answer is right).

use super::layout::{AGE_CLASSES, FRAMES, PUBLISHED, RESERVED, Region, SITES, TRUNCATED};
use super::{SiteId, Tag};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::fence;
use std::time::Duration;

/// One live sampled allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveSample {
    /// When it was allocated, on CLOCK_MONOTONIC.
    pub born: Duration,
    /// Bytes asked for.
    pub size: u64,
    /// Bytes it stands for.
    pub weight: u64,
}

/// The live samples of one (tag, call stack), and what became of the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteSnapshot {
    /// Samples ever taken here.
    pub allocated: u64,
    /// What they stand for, in bytes.
    pub allocated_bytes: u64,
    /// Freed samples by age at death; class bounds are in [`SiteSnapshot::age_bound`].
    pub deaths: [u32; AGE_CLASSES],
    /// Samples alive now, in no order.
    pub live: Vec<LiveSample>,
}

impl SiteSnapshot {
    /// The age at which a class of [`SiteSnapshot::deaths`] begins.
    pub fn age_bound(class: usize) -> Duration {
        match class {
            0 => Duration::ZERO,
            _ => Duration::from_nanos(
                1 << (super::layout::AGE_SHIFT as usize + class.min(AGE_CLASSES - 1) - 1),
            ),
        }
    }

    /// Estimated bytes alive.
    pub fn live_bytes(&self) -> u64 {
        self.live.iter().fold(0, |sum, sample| sum.saturating_add(sample.weight))
    }
}

/// What found no room. Anything above zero belongs in the report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Samples without a slot.
    pub samples: u64,
    /// What they stood for, in bytes.
    pub bytes: u64,
    /// Samples kept without their call stack.
    pub sites: u64,
}

/// Everything alive at one moment, grouped by (tag, call stack).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeapSnapshot {
    /// When the reading began, on CLOCK_MONOTONIC.
    pub taken: Duration,
    /// Process that writes; zero when no library has claimed the region, so nothing is measured.
    pub owner: u32,
    /// Mean bytes between samples.
    pub period: u64,
    /// Samples ever taken.
    pub samples: u64,
    /// Samples freed again.
    pub deaths: u64,
    /// What found no room.
    pub dropped: Dropped,
    /// Groups with live samples; [`SiteId::UNKNOWN`] collects, per tag, those without a call stack.
    pub sites: BTreeMap<(Tag, SiteId), SiteSnapshot>,
}

impl HeapSnapshot {
    /// Estimated bytes alive, over all sites.
    pub fn live_bytes(&self) -> u64 {
        self.sites.values().fold(0, |sum, site| sum.saturating_add(site.live_bytes()))
    }

    /// Estimated bytes alive of one tag.
    pub fn live_bytes_of(&self, tag: Tag) -> u64 {
        let of_tag = self.sites.range((tag, SiteId(0))..=(tag, SiteId::UNKNOWN));
        of_tag.fold(0, |sum, (_, site)| sum.saturating_add(site.live_bytes()))
    }
}

/// A call stack, innermost frame first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteStack {
    /// Whose memory.
    pub tag: Tag,
    /// Return addresses in the host's address space. Subtract one before looking up the line.
    pub frames: Vec<u64>,
    /// Whether outer frames are missing.
    pub truncated: bool,
}

impl Region {
    /// Reads everything alive. `now` is CLOCK_MONOTONIC, the clock births are stamped with.
    pub fn snapshot(&self, now: Duration) -> HeapSnapshot {
        let header = &self.header;
        let mut sites: BTreeMap<(Tag, SiteId), SiteSnapshot> = BTreeMap::new();
        for index in 0..self.addresses.len() {
            let Some((tag, site, sample)) = self.read_sample(index) else { continue };
            let group = sites.entry((tag, site)).or_insert_with(|| self.read_site(site));
            group.live.push(sample);
        }
        HeapSnapshot {
            taken: now,
            owner: header.owner.load(Relaxed),
            period: header.period.load(Relaxed),
            samples: header.births.load(Relaxed).saturating_sub(1),
            deaths: header.deaths.load(Relaxed),
            dropped: Dropped {
                samples: header.dropped_samples.load(Relaxed),
                bytes: header.dropped_bytes.load(Relaxed),
                sites: header.dropped_sites.load(Relaxed),
            },
            sites,
        }
    }

    /// The call stack of a site, once it is completely written.
    pub fn stack(&self, site: SiteId) -> Option<SiteStack> {
        let site = self.sites.get(site.0 as usize)?;
        let depth = site.depth.load(Acquire);
        if depth & PUBLISHED == 0 {
            return None;
        }
        let frames = ((depth & !(PUBLISHED | TRUNCATED)) as usize).min(FRAMES);
        Some(SiteStack {
            tag: Tag(site.tag.load(Relaxed)),
            frames: site.frames[..frames].iter().map(|frame| frame.load(Relaxed)).collect(),
            truncated: depth & TRUNCATED != 0,
        })
    }

    fn read_sample(&self, index: usize) -> Option<(Tag, SiteId, LiveSample)> {
        let slot = &self.addresses[index];
        let address = slot.load(Acquire);
        if address <= RESERVED {
            return None;
        }
        let record = &self.records[index];
        let birth = record.birth.load(Relaxed);
        let sample = LiveSample {
            born: Duration::from_nanos(record.born.load(Relaxed)),
            size: record.size.load(Relaxed),
            weight: record.weight.load(Relaxed),
        };
        let site = SiteId(record.site.load(Relaxed));
        let tag = Tag(record.tag.load(Relaxed));
        fence(Acquire);
        if slot.load(Relaxed) != address || record.birth.load(Relaxed) != birth {
            return None;
        }
        let site = if (site.0 as usize) < SITES { site } else { SiteId::UNKNOWN };
        Some((tag, site, sample))
    }

    fn read_site(&self, id: SiteId) -> SiteSnapshot {
        let Some(site) = self.sites.get(id.0 as usize) else { return SiteSnapshot::default() };
        SiteSnapshot {
            allocated: site.allocated.load(Relaxed),
            allocated_bytes: site.allocated_bytes.load(Relaxed),
            deaths: std::array::from_fn(|class| site.deaths[class].load(Relaxed)),
            live: Vec::new(),
        }
    }
}

#[cfg(test)]
#[path = "snapshot_tests.rs"]
mod tests;
