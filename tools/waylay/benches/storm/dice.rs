//! Every choice of a storm: drawn from the seed and the number of the campaign alone.

use std::time::Duration;

use waylay_dist::Seed;

/// The choices of one campaign, in their order.
pub(crate) struct Dice {
    seed: Seed,
    drawn: u32,
}

impl Dice {
    /// Those of the campaign with that number.
    pub(crate) fn of(seed: Seed, number: u32) -> Dice {
        Dice { seed: seed.derive("storm", number), drawn: 0 }
    }

    fn next(&mut self) -> u64 {
        self.drawn += 1;
        self.seed.derive("choice", self.drawn).get()
    }

    /// A number below that one.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// One of them.
    pub(crate) fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// True once in that many times.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// A time up to that one.
    pub(crate) fn time(&mut self, most: Duration) -> Duration {
        Duration::from_micros(self.next() % (most.as_micros() as u64).max(1))
    }
}
