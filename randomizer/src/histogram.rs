//! Percentiles of durations in constant space.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Buckets per doubling: a percentile is at most one sixteenth too high.
const PARTS: u64 = 16;
const PARTS_BITS: u32 = PARTS.trailing_zeros();
/// Values below [`PARTS`] have a bucket each; each further doubling of a 64-bit number has [`PARTS`].
const BUCKETS: usize = ((64 - PARTS_BITS + 1) as usize) * PARTS as usize;

/// Counts of durations by size.
#[derive(Debug, Clone)]
pub(crate) struct Histogram {
    counts: Box<[u64; BUCKETS]>,
    total: u64,
    longest: Duration,
}

/// What is usual and what is rare among many durations, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Half are at most this.
    pub p50_us: f64,
    /// All but one in a hundred are at most this.
    pub p99_us: f64,
    /// The longest.
    pub max_us: f64,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { counts: Box::new([0; BUCKETS]), total: 0, longest: Duration::ZERO }
    }
}

fn bucket(nanoseconds: u64) -> usize {
    let doublings = nanoseconds.max(1).ilog2().saturating_sub(PARTS_BITS);
    (u64::from(doublings) * PARTS + (nanoseconds >> doublings)) as usize
}

/// The greatest value of a bucket.
fn upper_end(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let doublings = (bucket / PARTS).saturating_sub(1);
    let part = bucket - doublings * PARTS;
    (((u128::from(part) + 1) << doublings) - 1).min(u128::from(u64::MAX)) as u64
}

impl Histogram {
    pub(crate) fn add(&mut self, duration: Duration) {
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket(nanoseconds)] += 1;
        self.total += 1;
        self.longest = self.longest.max(duration);
    }

    fn percentile(&self, share: f64) -> Duration {
        let wanted = (self.total as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Duration::from_nanos(upper_end(bucket)).min(self.longest);
            }
        }
        self.longest
    }

    pub(crate) fn percentiles(&self) -> Percentiles {
        let micros = |duration: Duration| duration.as_nanos() as f64 / 1000.0;
        Percentiles {
            p50_us: micros(self.percentile(0.5)),
            p99_us: micros(self.percentile(0.99)),
            max_us: micros(self.longest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_a_bucket_that_ends_at_most_a_sixteenth_above() {
        for exponent in 0..64 {
            for offset in [0, 1, 3] {
                let value = (1_u64 << exponent) + offset;
                let end = upper_end(bucket(value));
                assert!(end >= value && end - value <= value / 16, "{value} {end}");
            }
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_of_a_hundred() {
        let mut histogram = Histogram::default();
        for i in 1..=100 {
            histogram.add(Duration::from_micros(i));
        }
        let Percentiles { p50_us, p99_us, max_us } = histogram.percentiles();
        assert!((50.0..=53.2).contains(&p50_us) && (99.0..=100.0).contains(&p99_us), "{p50_us} {p99_us}");
        assert_eq!(max_us, 100.0);
        assert_eq!(Histogram::default().percentiles(), Percentiles::default());
    }
}
