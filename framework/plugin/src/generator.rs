//! Random numbers for threads that a test starts by itself: ChaCha with 8 rounds, keyed by a seed and an index.
//!
//! The host draws from distributions only on worker threads. A thread inside an iteration gets a generator of its own
//! instead, so that what it draws depends on the iteration's seed and on nothing that other threads do. The numbers are
//! the same on every machine and in every version.

/// A stream of random numbers; equal seeds and indices give equal streams.
#[derive(Clone, Debug)]
pub struct Generator {
    input: [u32; 16],
    output: [u32; 16],
    used: usize,
}

/// The constant words of ChaCha.
const SIGMA: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];
/// Keeps these streams apart from the host's own, which may share the seed: "waylay thread 01".
const DOMAIN: [u32; 4] = [0x6c79_6177, 0x7420_7961, 0x6165_7268, 0x3130_2064];

impl Generator {
    /// The stream of `seed` with that index.
    pub fn new(seed: u64, index: u64) -> Self {
        let words = [seed as u32, (seed >> 32) as u32, index as u32, (index >> 32) as u32];
        Self::keyed([words[0], words[1], words[2], words[3], DOMAIN[0], DOMAIN[1], DOMAIN[2], DOMAIN[3]])
    }

    fn keyed(key: [u32; 8]) -> Self {
        let mut input = [0; 16];
        input[..4].copy_from_slice(&SIGMA);
        input[4..12].copy_from_slice(&key);
        Self { input, output: [0; 16], used: 16 }
    }

    fn refill(&mut self) {
        let mut state = self.input;
        for _ in 0..4 {
            quarter(&mut state, 0, 4, 8, 12);
            quarter(&mut state, 1, 5, 9, 13);
            quarter(&mut state, 2, 6, 10, 14);
            quarter(&mut state, 3, 7, 11, 15);
            quarter(&mut state, 0, 5, 10, 15);
            quarter(&mut state, 1, 6, 11, 12);
            quarter(&mut state, 2, 7, 8, 13);
            quarter(&mut state, 3, 4, 9, 14);
        }
        for (word, start) in state.iter_mut().zip(self.input) {
            *word = word.wrapping_add(start);
        }
        self.output = state;
        self.used = 0;
        let counter = (u64::from(self.input[13]) << 32 | u64::from(self.input[12])).wrapping_add(1);
        self.input[12] = counter as u32;
        self.input[13] = (counter >> 32) as u32;
    }

    fn next_u32(&mut self) -> u32 {
        if self.used == self.output.len() {
            self.refill();
        }
        self.used += 1;
        self.output[self.used - 1]
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        u64::from(self.next_u32()) | u64::from(self.next_u32()) << 32
    }

    /// A number below `bound`, all equally likely; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        // The high half of bits × bound is uniform once the low halves that would be over-represented, those below
        // 2^64 mod bound, are drawn again.
        let over = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.bits()) * u128::from(bound);
            if product as u64 >= over {
                return (product >> 64) as u64;
            }
        }
    }

    /// A number from `low` to `high`, both included; `low` if the range is empty.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        if high <= low {
            return low;
        }
        let width = (high as u64).wrapping_sub(low as u64);
        let offset = if width == u64::MAX { self.bits() } else { self.below(width + 1) };
        low.wrapping_add(offset as i64)
    }

    /// A real number in [0, 1), in steps of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// True with that probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// One of the items, all equally likely; `None` if there are none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len() as u64) as usize)
    }

    /// Puts the items into a random order, all orders equally likely.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

fn quarter(state: &mut [u32; 16], a: usize, b: usize, c: usize, d: usize) {
    state[a] = state[a].wrapping_add(state[b]);
    state[d] = (state[d] ^ state[a]).rotate_left(16);
    state[c] = state[c].wrapping_add(state[d]);
    state[b] = (state[b] ^ state[c]).rotate_left(12);
    state[a] = state[a].wrapping_add(state[b]);
    state[d] = (state[d] ^ state[a]).rotate_left(8);
    state[c] = state[c].wrapping_add(state[d]);
    state[b] = (state[b] ^ state[c]).rotate_left(7);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::{Rng, SeedableRng};

    #[test]
    fn it_is_chacha8() {
        let key: [u32; 8] = std::array::from_fn(|i| 0x0101_0101 * (i as u32 + 3));
        let bytes: Vec<u8> = key.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut reference = ChaCha8Rng::from_seed(bytes.try_into().unwrap());
        let mut ours = Generator::keyed(key);
        for _ in 0..1000 {
            assert_eq!(ours.next_u32(), reference.next_u32());
        }
    }

    #[test]
    fn the_numbers_never_change() {
        let mut generator = Generator::new(1, 2);
        assert_eq!([generator.bits(), generator.bits()], STABLE);
    }
    const STABLE: [u64; 2] = [16_851_182_064_312_616_236, 13_744_198_423_746_784_936];

    #[test]
    fn seeds_and_indices_are_different_streams() {
        let first = |seed, index| Generator::new(seed, index).bits();
        assert_eq!(first(7, 1), first(7, 1));
        assert_ne!(first(7, 1), first(7, 2));
        assert_ne!(first(7, 1), first(8, 1));
        assert_ne!(first(1 << 32, 0), first(1, 0));
    }

    #[test]
    fn bounds_hold_at_the_edges() {
        let mut generator = Generator::new(3, 0);
        assert_eq!(generator.below(0), 0);
        assert_eq!(generator.below(1), 0);
        assert_eq!(generator.between(5, 5), 5);
        assert_eq!(generator.between(9, -9), 9);
        assert_eq!(generator.pick::<u8>(&[]), None);
        for _ in 0..1000 {
            assert!(generator.below(3) < 3);
            assert!((-2..=2).contains(&generator.between(-2, 2)));
            assert!((0.0..1.0).contains(&generator.unit()));
            generator.between(i64::MIN, i64::MAX);
        }
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..100).collect();
        Generator::new(4, 0).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
