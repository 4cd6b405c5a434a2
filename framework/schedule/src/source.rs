//! Where the chance in a strategy comes from.
//!
//! A strategy draws everything random through [`Source`], and only in two shapes: a number below a bound, and a
//! key to be ordered among the other keys of the run. In production the source is [`ChaCha`], whose stream is a
//! function of the seed and the index of the run alone. Tests put an enumerating source in its place and so
//! compute exact probabilities: each draw then branches over all its outcomes.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::run::Run;

/// A stream of independent draws that starts over with each run.
pub trait Source: Send {
    /// Starts the stream of this run.
    fn begin(&mut self, run: Run);

    /// A number uniform in `0..bound`; 0 when the bound is 0.
    fn below(&mut self, bound: u64) -> u64;

    /// A key whose rank is uniform among all keys drawn in this run. Only comparisons of keys mean anything.
    fn key(&mut self) -> u64;

    /// True once in `n` draws on average.
    #[inline]
    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// The production source: ChaCha8, whose output is the same in every version and on every machine.
#[derive(Clone, Debug)]
pub struct ChaCha {
    stream: ChaCha8Rng,
}

impl ChaCha {
    /// A source that has not begun a run; it behaves as run 0 of seed 0 until it does.
    pub fn new() -> ChaCha {
        ChaCha { stream: stream_of(Run::default()) }
    }
}

impl Default for ChaCha {
    fn default() -> Self {
        ChaCha::new()
    }
}

fn stream_of(run: Run) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&run.seed.0.to_le_bytes());
    key[8..16].copy_from_slice(&run.index.to_le_bytes());
    key[16..].copy_from_slice(b"waylay-schedule1");
    ChaCha8Rng::from_seed(key)
}

impl Source for ChaCha {
    fn begin(&mut self, run: Run) {
        self.stream = stream_of(run);
    }

    /// Lemire's multiply-and-shift with rejection: unbiased, and one multiplication nearly always.
    #[inline]
    fn below(&mut self, bound: u64) -> u64 {
        if let Ok(bound) = u32::try_from(bound) {
            let mut product = u64::from(self.stream.next_u32()) * u64::from(bound);
            if (product as u32) < bound {
                let threshold = bound.wrapping_neg().checked_rem(bound).unwrap_or(0);
                while (product as u32) < threshold {
                    product = u64::from(self.stream.next_u32()) * u64::from(bound);
                }
            }
            return product >> 32;
        }
        let mut product = u128::from(self.stream.next_u64()) * u128::from(bound);
        if (product as u64) < bound {
            let threshold = bound.wrapping_neg() % bound;
            while (product as u64) < threshold {
                product = u128::from(self.stream.next_u64()) * u128::from(bound);
            }
        }
        (product >> 64) as u64
    }

    #[inline]
    fn key(&mut self) -> u64 {
        self.stream.next_u64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Seed;

    #[test]
    fn the_stream_is_a_function_of_seed_and_index() {
        let draw = |seed, index| {
            let mut source = ChaCha::new();
            source.begin(Run { seed: Seed(seed), index });
            [source.key(), source.below(1000), source.below(1 << 40)]
        };
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(1, 3));
        assert_ne!(draw(1, 2), draw(2, 2));
    }

    /// Stored seeds are reproductions: these values may never change.
    #[test]
    fn the_stream_is_stable() {
        let mut source = ChaCha::new();
        source.begin(Run { seed: Seed(42), index: 7 });
        let mut draw = || source.below(1_000_000);
        let drawn = [draw(), draw(), draw(), draw(), source.key()];
        assert_eq!(drawn, STABLE);
    }

    const STABLE: [u64; 5] = [763_001, 365_163, 479_570, 923_957, 5_241_812_402_984_425_088];

    #[test]
    fn bounds_are_respected() {
        let mut source = ChaCha::new();
        assert_eq!(source.below(0), 0);
        assert_eq!(source.below(1), 0);
        for bound in [2, 3, 7, u64::from(u32::MAX), 1 << 33, u64::MAX] {
            for _ in 0..1000 {
                assert!(source.below(bound) < bound);
            }
        }
    }
}
