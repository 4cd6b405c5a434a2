//! Which allocations are sampled: a Poisson process over allocated bytes.
//!
//! Sample points lie on the bytes allocated by a thread, one in `period` on average, independent of each
//! other. The distance to the next is exponential; rounded down, an allocation of n bytes contains a point
//! with probability exactly 1 - exp(-n / period), which is what `waylay_leaks::region::weight` divides by.
//! Because the distribution has no memory, the countdown starts afresh after a sampled allocation.

use super::thread::{NEVER, Thread};
use std::sync::atomic::AtomicU8;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Before the constructor: nothing is known, ask again.
const UNDECIDED: u8 = 0;
/// No accounting in this process.
const OFF: u8 = 1;
/// Samples are taken.
const ON: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(UNDECIDED);
static PERIOD: AtomicU64 = AtomicU64::new(0);
/// Seed of the next thread.
static SEED: AtomicU64 = AtomicU64::new(0);

/// Decides for the rest of the process.
pub(super) fn switch(period: Option<u64>, seed: u64) {
    PERIOD.store(period.unwrap_or(0), Relaxed);
    SEED.store(seed, Relaxed);
    STATE.store(if period.is_some() { ON } else { OFF }, Release);
}

/// Mean bytes between samples.
pub(super) fn period() -> u64 {
    PERIOD.load(Relaxed)
}

/// Whether an allocation that the thread could not spend is a sample. `is_live` says whether there is
/// still a region to write to; a forked child has none and is never asked again.
pub(super) fn is_due(thread: &Thread, size: usize, is_live: bool) -> bool {
    if thread.spend(size) {
        return false;
    }
    match STATE.load(Acquire) {
        UNDECIDED => return false,
        ON if is_live => {}
        _ => {
            thread.set_left(NEVER);
            return false;
        }
    }
    if thread.random.get() == 0 {
        thread.random.set(thread_seed());
        thread.set_left(distance(thread));
        if thread.spend(size) {
            return false;
        }
    }
    thread.set_left(distance(thread));
    true
}

/// Bytes to the next sample point.
fn distance(thread: &Thread) -> u64 {
    let word = next_random(thread);
    // 53 random bits, shifted by half a step: never 0, never 1.
    let uniform = ((word >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    (-uniform.ln() * period() as f64) as u64
}

/// Marsaglia's xorshift with a multiplication at the end (S. Vigna, ACM TOMS 42, 2016): one word of state,
/// never zero.
fn next_random(thread: &Thread) -> u64 {
    let mut state = thread.random.get();
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    thread.random.set(state);
    state.wrapping_mul(0x2545_F491_4F6C_DD1D)
}

/// Well-separated and never zero: a fixed bijection of consecutive numbers.
fn thread_seed() -> u64 {
    let number = SEED.fetch_add(0x9E37_79B9_7F4A_7C15, Relaxed);
    let mixed = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (mixed ^ (mixed >> 31)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::thread;
    use waylay_leaks::region::weight;

    /// One test, because the switch is global: off and undecided first, then the statistics.
    #[test]
    fn the_switch_and_the_estimates() {
        // SAFETY: used on this thread only.
        let thread = unsafe { thread::current() };
        thread.set_left(0);
        assert!(!is_due(thread, 10, true), "undecided");
        assert!(!thread.spend(10), "undecided is asked again");
        switch(None, 1);
        assert!(!is_due(thread, 10, true));
        assert!(thread.spend(1 << 40), "off is never asked again");

        switch(Some(4096), 7);
        thread.set_left(0);
        assert!(!is_due(thread, 10, false), "no region");
        assert!(thread.spend(1 << 40));

        // The sum of weights over all samples is an unbiased estimate of the bytes allocated. For n equal
        // allocations hit with probability p its standard deviation is weight * sqrt(n p (1-p)). Five and
        // a half of these are exceeded once in 2.6e7 draws; the draws are fixed by the seed.
        for size in [16u64, 200, 4096, 20_000] {
            thread.set_left(0);
            thread.random.set(0);
            let n = 400_000u64;
            let hits = (0..n)
                .filter(|_| !thread.spend(size as usize) && is_due(thread, size as usize, true))
                .count();
            let hit = 1.0 - (-(size as f64) / 4096.0).exp();
            let estimate = hits as f64 * weight(size, 4096) as f64;
            let deviation = weight(size, 4096) as f64 * (n as f64 * hit * (1.0 - hit)).sqrt();
            let error = (estimate - (n * size) as f64).abs();
            assert!(error < 5.5 * deviation + n as f64 * 1e-3, "{size}: {error} of {deviation}");
        }
        thread.set_left(0);
    }
}
