//! The generator that a worker's tests draw from: one independent ChaCha8 stream per iteration.
//!
//! An iteration must be repeatable alone, so each has its own stream under the worker's key. Creating a
//! `ChaCha8Rng` for each would cost one call of the block function, which makes four blocks (256 bytes) of
//! which a typical iteration uses a few words. The stream of an iteration therefore has two parts:
//!
//! * *head*, 16 words (8 draws of 64 bits): block `i % 4` of the keystream with nonce `i / 4`. One call of
//!   the block function makes the heads of four consecutive iterations.
//! * *tail*, everything after: the keystream with nonce `2^63 + i`, from block 0.
//!
//! Head nonces are below 2^62 and tail nonces have the top bit, so no two parts overlap. An iteration that
//! draws nothing costs nothing: [`WorkerRng::begin`] only moves indices.

use std::convert::Infallible;

use rand::{Rng, SeedableRng, TryRng};
use rand_chacha::ChaCha8Rng;

use crate::seed::{Domain, Seed};

const HEAD_WORDS: usize = 16;
const HEADS: usize = 4;
const TAIL: u64 = 1 << 63;
const WORKER_SEED: u64 = 1 << 62;
/// Above every group number (iteration / 4), so that no group matches before the first is made.
const NO_GROUP: u64 = u64::MAX;

/// The generator of one worker of one test, positioned in one iteration at a time.
///
/// Made by [`Seed::worker`]; its numbers depend on the campaign's seed, the test's name, the worker's index
/// and the iteration, and on nothing else. It begins in iteration 0.
#[derive(Clone, Debug)]
pub struct WorkerRng {
    heads: [u32; HEADS * HEAD_WORDS],
    /// Next word of the current head, and where the head ends. Equal when there is none left or none yet.
    next: usize,
    end: usize,
    /// The group of four iterations whose heads are in `heads`.
    group: u64,
    iteration: u64,
    part: Part,
    /// Makes heads, and holds the tail's position and buffer while `part` is `Tail`.
    chacha: ChaCha8Rng,
    worker_seed: u64,
}

/// What the current iteration has used so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Nothing,
    Head,
    Tail,
}

impl Seed {
    /// The generator of one worker of one test.
    pub fn worker(self, test: &str, worker: u32) -> WorkerRng {
        WorkerRng::new(self.key(Domain::Worker, test, worker))
    }
}

impl WorkerRng {
    pub(crate) fn new(key: [u8; 32]) -> Self {
        let mut chacha = ChaCha8Rng::from_seed(key);
        chacha.set_stream(WORKER_SEED);
        let worker_seed = chacha.next_u64();
        Self {
            heads: [0; HEADS * HEAD_WORDS],
            next: 0,
            end: 0,
            group: NO_GROUP,
            iteration: 0,
            part: Part::Nothing,
            chacha,
            worker_seed,
        }
    }

    /// Moves to the beginning of an iteration's stream (the top bit of `iteration` is ignored).
    #[inline]
    pub fn begin(&mut self, iteration: u64) {
        self.iteration = iteration & !TAIL;
        self.next = 0;
        self.end = 0;
        self.part = Part::Nothing;
    }

    /// The iteration whose stream this is.
    pub fn iteration(&self) -> u64 {
        self.iteration
    }

    /// A seed for a generator of the test's own, different in every iteration and independent of the
    /// numbers drawn here.
    pub fn iteration_seed(&self) -> Seed {
        // SplitMix64's increment and finaliser: a bijection of the iteration, so no two are equal.
        let mut z = self.worker_seed.wrapping_add(self.iteration.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Seed::new(z ^ (z >> 31))
    }

    #[inline]
    fn next_word(&mut self) -> u32 {
        if self.next < self.end {
            let word = self.heads[self.next];
            self.next += 1;
            return word;
        }
        self.advance();
        if self.part == Part::Tail {
            return self.chacha.next_u32();
        }
        let word = self.heads[self.next];
        self.next += 1;
        word
    }

    /// Called with no head word left: opens the head, or the tail after it, or stays in the tail.
    fn advance(&mut self) {
        match self.part {
            Part::Nothing => {
                let group = self.iteration / HEADS as u64;
                if self.group != group {
                    self.seek(group);
                    let mut bytes = [0; HEADS * HEAD_WORDS * 4];
                    self.chacha.fill_bytes(&mut bytes);
                    for (word, bytes) in self.heads.iter_mut().zip(bytes.as_chunks::<4>().0) {
                        *word = u32::from_le_bytes(*bytes);
                    }
                    self.group = group;
                }
                self.next = (self.iteration % HEADS as u64) as usize * HEAD_WORDS;
                self.end = self.next + HEAD_WORDS;
                self.part = Part::Head;
            }
            Part::Head => {
                self.seek(TAIL | self.iteration);
                self.part = Part::Tail;
            }
            Part::Tail => {}
        }
    }

    fn seek(&mut self, nonce: u64) {
        // In this order: `set_stream` in the middle of a block would make the rest of that block.
        self.chacha.set_word_pos(0);
        self.chacha.set_stream(nonce);
    }

    #[cold]
    fn next_u64_across_parts(&mut self) -> u64 {
        let low = self.next_word();
        let high = self.next_word();
        u64::from(high) << 32 | u64::from(low)
    }
}

impl TryRng for WorkerRng {
    type Error = Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.next_word())
    }

    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        if self.end - self.next < 2 {
            if self.end != self.next {
                return Ok(self.next_u64_across_parts());
            }
            self.advance();
            if self.part == Part::Tail {
                return Ok(self.chacha.next_u64());
            }
        }
        let low = self.heads[self.next];
        let high = self.heads[self.next + 1];
        self.next += 2;
        Ok(u64::from(high) << 32 | u64::from(low))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for chunk in bytes.chunks_mut(4) {
            let word = self.next_word().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(rng: &mut WorkerRng, count: usize) -> Vec<u32> {
        (0..count).map(|_| rng.next_u32()).collect()
    }

    #[test]
    fn an_iteration_is_the_same_in_any_order() {
        let mut forwards = Seed::new(1).worker("queue", 0);
        let expected: Vec<_> = (0..12)
            .map(|i| {
                forwards.begin(i);
                words(&mut forwards, (i as usize * 7) % 40)
            })
            .collect();
        let mut backwards = Seed::new(1).worker("queue", 0);
        for i in (0..12).rev() {
            backwards.begin(i);
            assert_eq!(words(&mut backwards, (i as usize * 7) % 40), expected[i as usize]);
        }
    }

    #[test]
    fn a_stream_is_made_of_the_documented_parts() {
        let key = [9; 32];
        let mut rng = WorkerRng::new(key);
        for iteration in [0, 1, 2, 3, 4, 1_000_003] {
            let mut expected = Vec::new();
            let mut chacha = ChaCha8Rng::from_seed(key);
            chacha.set_stream(iteration / 4);
            chacha.set_word_pos(u128::from(iteration % 4) * 16);
            expected.extend((0..16).map(|_| chacha.next_u32()));
            let mut chacha = ChaCha8Rng::from_seed(key);
            chacha.set_stream(1 << 63 | iteration);
            expected.extend((0..100).map(|_| chacha.next_u32()));

            rng.begin(iteration);
            assert_eq!(words(&mut rng, 116), expected);
        }
    }

    #[test]
    fn wide_draws_and_bytes_follow_the_same_words() {
        let mut rng = Seed::new(3).worker("t", 2);
        rng.begin(5);
        let words = words(&mut rng, 80);
        for skip in [0, 1] {
            rng.begin(5);
            for word in &words[..skip] {
                assert_eq!(rng.next_u32(), *word);
            }
            for pair in words[skip..].chunks_exact(2) {
                assert_eq!(rng.next_u64(), u64::from(pair[1]) << 32 | u64::from(pair[0]));
            }
        }
        rng.begin(5);
        let mut bytes = [0; 79];
        rng.fill_bytes(&mut bytes);
        let expected: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(bytes, expected[..79]);
    }

    #[test]
    fn iteration_seeds_differ() {
        let mut rng = Seed::new(3).worker("t", 0);
        let seeds: std::collections::HashSet<_> = (0..1000)
            .map(|i| {
                rng.begin(i);
                rng.iteration_seed()
            })
            .collect();
        assert_eq!(seeds.len(), 1000);
    }
}
