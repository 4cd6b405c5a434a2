//! The writing side: called from inside `malloc` and `free`, so nothing here allocates, blocks or panics.
//!
//! The sample table has two choices of bucket per address, of which the emptier is taken, and no moves: a
//! lookup reads at most two cache lines, and filling a table to 80 % drops fewer than one sample in a thousand.

use super::layout::{
    AGE_CLASSES, AGE_SHIFT, BUCKET, FRAMES, MAGIC, PUBLISHED, REGION_BYTES, RESERVED, Region, SAMPLES, SITES,
    Site, TRUNCATED, VACANT, VERSION,
};
use super::{SiteId, Tag};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, fence};

/// Places that are tried for a site before it is dropped.
const SITE_PROBES: usize = 64;

/// One sampled allocation, as the writer sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Birth number, from [`Region::next_birth`].
    pub birth: u64,
    /// Birth time, nanoseconds of CLOCK_MONOTONIC.
    pub born: u64,
    /// Bytes asked for.
    pub size: u64,
    /// Bytes it stands for.
    pub weight: u64,
    /// Who allocated it, from [`Region::intern`].
    pub site: SiteId,
    /// Whose memory.
    pub tag: Tag,
}

impl Region {
    /// Makes zeroed memory a region without an owner. For the driver, before the host exists.
    pub fn format(&self) {
        let header = &self.header;
        header.version.store(VERSION, Relaxed);
        header.bytes.store(REGION_BYTES as u64, Relaxed);
        header.births.store(1, Relaxed);
        header.magic.store(MAGIC, Release);
    }

    /// Whether this memory has the layout that this code was built for.
    pub fn is_formatted(&self) -> bool {
        let header = &self.header;
        header.magic.load(Acquire) == MAGIC
            && header.version.load(Relaxed) == VERSION
            && header.bytes.load(Relaxed) == REGION_BYTES as u64
    }

    /// Makes `pid` the writer. False when the region has another layout or already has a writer, which is
    /// how a child that inherited descriptor and environment learns that they are not meant for it.
    pub fn claim(&self, pid: u32, period: u64, now: u64) -> bool {
        let header = &self.header;
        if !self.is_formatted() || header.owner.compare_exchange(0, pid, AcqRel, Acquire).is_err() {
            return false;
        }
        header.started.store(now, Relaxed);
        header.period.store(period, Release);
        true
    }

    /// A birth number no other sample has.
    pub fn next_birth(&self) -> u64 {
        self.header.births.fetch_add(1, Relaxed)
    }

    /// The site of (tag, frames), new or known; frames beyond [`FRAMES`] are cut off and the site says so.
    /// [`SiteId::UNKNOWN`] when the table is full around its place.
    pub fn intern(&self, tag: Tag, frames: &[u64]) -> SiteId {
        let truncated = frames.len() > FRAMES;
        let frames = &frames[..frames.len().min(FRAMES)];
        let key = site_key(tag, frames);
        for probe in 0..SITE_PROBES {
            let index = (key as usize).wrapping_add(probe) % SITES;
            let site = &self.sites[index];
            let known = match site.key.compare_exchange(0, key, AcqRel, Acquire) {
                Ok(_) => true,
                Err(present) => present == key,
            };
            if known {
                if site.depth.load(Acquire) & PUBLISHED == 0 {
                    publish(site, tag, frames, truncated);
                }
                return SiteId(index as u32);
            }
        }
        self.header.dropped_sites.fetch_add(1, Relaxed);
        SiteId::UNKNOWN
    }

    /// Enters a new sample under `address` and counts it at its site. False when it was dropped.
    pub fn enter(&self, address: u64, sample: &Sample) -> bool {
        if !self.put(address, sample) {
            self.header.dropped_samples.fetch_add(1, Relaxed);
            self.header.dropped_bytes.fetch_add(sample.weight, Relaxed);
            return false;
        }
        if let Some(site) = self.sites.get(sample.site.0 as usize) {
            site.allocated.fetch_add(1, Relaxed);
            site.allocated_bytes.fetch_add(sample.weight, Relaxed);
        }
        true
    }

    /// Takes the sample at `address` out, if there is one. Must be called before the memory is given back,
    /// or another thread may already have sampled the same address again.
    pub fn take(&self, address: u64) -> Option<Sample> {
        if address <= RESERVED {
            return None;
        }
        for bucket in buckets(address) {
            for index in bucket..bucket + BUCKET {
                let slot = &self.addresses[index];
                if slot.load(Acquire) != address {
                    continue;
                }
                let record = &self.records[index];
                let sample = Sample {
                    birth: record.birth.load(Relaxed),
                    born: record.born.load(Relaxed),
                    size: record.size.load(Relaxed),
                    weight: record.weight.load(Relaxed),
                    site: SiteId(record.site.load(Relaxed)),
                    tag: Tag(record.tag.load(Relaxed)),
                };
                // A double free races with itself here; only one of the two takes the sample.
                if slot.compare_exchange(address, VACANT, AcqRel, Acquire).is_ok() {
                    return Some(sample);
                }
            }
        }
        None
    }

    /// Puts back a sample that was taken out for a `realloc` that failed. False when its place is gone.
    pub fn restore(&self, address: u64, sample: &Sample) -> bool {
        let restored = self.put(address, sample);
        if !restored {
            self.header.dropped_samples.fetch_add(1, Relaxed);
            self.header.dropped_bytes.fetch_add(sample.weight, Relaxed);
        }
        restored
    }

    /// Counts the death of a sample that was taken out.
    pub fn bury(&self, sample: &Sample, now: u64) {
        self.header.deaths.fetch_add(1, Relaxed);
        if let Some(site) = self.sites.get(sample.site.0 as usize) {
            site.freed.fetch_add(1, Relaxed);
            site.freed_bytes.fetch_add(sample.weight, Relaxed);
            site.deaths[age_class(now.saturating_sub(sample.born))].fetch_add(1, Relaxed);
        }
    }

    fn put(&self, address: u64, sample: &Sample) -> bool {
        if address <= RESERVED {
            return false;
        }
        let vacancies = |bucket: usize| {
            let slots = &self.addresses[bucket..bucket + BUCKET];
            slots.iter().filter(|slot| slot.load(Relaxed) == VACANT).count()
        };
        let [mut first, mut second] = buckets(address);
        if vacancies(first) < vacancies(second) {
            (first, second) = (second, first);
        }
        let mut slots = (first..first + BUCKET).chain(second..second + BUCKET);
        slots.any(|index| self.fill(index, address, sample))
    }

    fn fill(&self, index: usize, address: u64, sample: &Sample) -> bool {
        let slot: &AtomicU64 = &self.addresses[index];
        if slot.load(Relaxed) != VACANT || slot.compare_exchange(VACANT, RESERVED, AcqRel, Relaxed).is_err() {
            return false;
        }
        let record = &self.records[index];
        record.birth.store(sample.birth, Relaxed);
        // A reader that sees any field below sees the new birth number as well, and throws away the mix.
        fence(Release);
        record.born.store(sample.born, Relaxed);
        record.size.store(sample.size, Relaxed);
        record.weight.store(sample.weight, Relaxed);
        record.site.store(sample.site.0, Relaxed);
        record.tag.store(sample.tag.0, Relaxed);
        slot.store(address, Release);
        true
    }
}

/// The class of an age, as in [`super::layout::AGE_CLASSES`].
pub fn age_class(nanoseconds: u64) -> usize {
    let bits = u64::BITS - (nanoseconds >> AGE_SHIFT).leading_zeros();
    (bits as usize).min(AGE_CLASSES - 1)
}

/// Writes what the key stands for. Two threads may do so at once; they write the same.
fn publish(site: &Site, tag: Tag, frames: &[u64], truncated: bool) {
    site.tag.store(tag.0, Relaxed);
    for (place, frame) in site.frames.iter().zip(frames) {
        place.store(*frame, Relaxed);
    }
    let cut = if truncated { TRUNCATED } else { 0 };
    site.depth.store(PUBLISHED | cut | frames.len() as u32, Release);
}

/// First indices of the two buckets an address may be in.
fn buckets(address: u64) -> [usize; 2] {
    const BUCKETS: usize = SAMPLES / BUCKET;
    let hash = mix(address >> 4);
    let first = hash as usize % BUCKETS;
    let second = (hash >> 32) as usize % BUCKETS;
    [first * BUCKET, second * BUCKET]
}

/// Never zero, so that it can mark a site as taken. With 2^14 sites two stacks share a key with
/// probability below 2^-37.
fn site_key(tag: Tag, frames: &[u64]) -> u64 {
    let seed = mix(u64::from(tag.0) + 1);
    frames.iter().fold(seed, |hash, frame| mix(hash.rotate_left(5) ^ *frame)).max(1)
}

/// A bijection in which every input bit reaches every output bit: two rounds of multiply and fold.
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ (value >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    value ^ (value >> 32)
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
