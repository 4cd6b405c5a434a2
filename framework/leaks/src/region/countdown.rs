//! Which allocations are sampled, and which addresses may be sampled ones: what a host does inside its allocator when no
//! preloaded library does it for it. Pure; nothing here allocates, locks or waits.
//!
//! Sample points lie on the bytes that a thread allocates, one in `period` on average, independent of each other. The
//! distance to the next is exponential; rounded down, an allocation of n bytes contains a point with probability exactly
//! 1 - exp(-n / period), which is what [`super::weight`] divides by. Because the distribution has no memory, the
//! countdown starts afresh after a sampled allocation.

use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};

/// A countdown that never runs out.
pub const NEVER: u64 = u64::MAX;

/// Bytes to the next sample point and, by way of its argument, the state of the next draw. A state of zero is none.
pub fn next_distance(state: &mut u64, period: u64) -> u64 {
    // Marsaglia's xorshift with a multiplication at the end (S. Vigna, ACM TOMS 42, 2016): one word of state.
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    let word = state.wrapping_mul(0x2545_F491_4F6C_DD1D);
    // 53 random bits, shifted by half a step: never 0, never 1.
    let uniform = ((word >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    (-uniform.ln() * period as f64) as u64
}

/// The state with which thread number `number` begins: well-separated and never zero.
pub fn first_state(seed: u64, number: u64) -> u64 {
    let mixed = seed.wrapping_add(number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (mixed ^ (mixed >> 31)).max(1)
}

/// Bytes of the filter. With the few hundred live samples of a heap of 100 MB at the default period, fewer than one `free`
/// in a hundred looks further than this.
const SLOTS: usize = 1 << 16;
/// log2 of the bytes of address space that share a slot.
const STRETCH: u32 = 8;

/// Counts live samples by address, so that a `free` of anything else costs one look.
pub struct Filter([AtomicU8; SLOTS]);

impl Filter {
    /// Nothing is held.
    pub const fn new() -> Filter {
        Filter([const { AtomicU8::new(0) }; SLOTS])
    }

    /// Whether `address` may be that of a live sample.
    #[inline(always)]
    pub fn may_hold(&self, address: usize) -> bool {
        self.0[slot(address)].load(Relaxed) != 0
    }

    /// Counts a live sample.
    pub fn add(&self, address: usize) {
        let _ = self.0[slot(address)].fetch_update(AcqRel, Relaxed, |count| count.checked_add(1));
    }

    /// Takes back one [`Filter::add`]. A count at the top has lost count and stays.
    pub fn remove(&self, address: usize) {
        let less = |count: u8| if count == u8::MAX { None } else { count.checked_sub(1) };
        let _ = self.0[slot(address)].fetch_update(AcqRel, Relaxed, less);
    }
}

impl Default for Filter {
    fn default() -> Filter {
        Filter::new()
    }
}

/// The higher bits are folded in because large blocks all begin at the same place within a page.
#[inline(always)]
fn slot(address: usize) -> usize {
    ((address >> STRETCH) ^ (address >> 24)) % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::weight;

    /// The sum of weights over all samples is an unbiased estimate of the bytes allocated. For n equal allocations hit
    /// with probability p its standard deviation is weight * sqrt(n p (1-p)). Five and a half of these are exceeded once
    /// in 2.6e7 draws; the draws are fixed by the seed.
    #[test]
    fn estimates_are_unbiased() {
        for (number, size) in [16u64, 200, 4096, 20_000].into_iter().enumerate() {
            let mut state = first_state(7, number as u64);
            let mut left = next_distance(&mut state, 4096);
            let n = 400_000u64;
            let mut hits = 0u64;
            for _ in 0..n {
                match left.checked_sub(size) {
                    Some(rest) => left = rest,
                    None => {
                        hits += 1;
                        left = next_distance(&mut state, 4096);
                    }
                }
            }
            let hit = 1.0 - (-(size as f64) / 4096.0).exp();
            let estimate = hits as f64 * weight(size, 4096) as f64;
            let deviation = weight(size, 4096) as f64 * (n as f64 * hit * (1.0 - hit)).sqrt();
            let error = (estimate - (n * size) as f64).abs();
            assert!(error < 5.5 * deviation + n as f64 * 1e-3, "{size}: {error} of {deviation}");
        }
    }

    #[test]
    fn states_differ_and_are_never_zero() {
        let states: std::collections::BTreeSet<u64> =
            (0..10_000).map(|number| first_state(0, number)).collect();
        assert!(states.len() == 10_000 && !states.contains(&0));
    }

    #[test]
    fn what_was_added_may_be_held_until_it_is_removed() {
        let filter = Box::new(Filter::new());
        assert!(!filter.may_hold(0x7f00_1230));
        filter.add(0x7f00_1230);
        filter.add(0x7f00_1230);
        filter.remove(0x7f00_1230);
        assert!(filter.may_hold(0x7f00_1230));
        filter.remove(0x7f00_1230);
        filter.remove(0x7f00_1230);
        assert!(!filter.may_hold(0x7f00_1230));
        (0..300).for_each(|_| filter.add(0x10));
        (0..300).for_each(|_| filter.remove(0x10));
        assert!(filter.may_hold(0x10), "a count at the top never says no");
    }
}
