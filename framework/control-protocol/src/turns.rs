//! Which runs have accesses to what is handed over as steps, and how many.
//!
//! Such an access meets another only in an order that a hand-over happened to give: an atomic flag, an exchange, a semaphore. As
//! long as the hand-over is right a step there shows nothing, and k, the number of steps, is what every guarantee divides by. If
//! it is wrong, so that two threads own the object at once, nothing but a step there shows it. So one run in [`SHARE`] has
//! these steps, or fewer where such runs are much longer: all of them together make at most half as many steps as the
//! others. They are counted apart: nothing is promised by them, and nothing that is learned of their length is used elsewhere.
//!
//! They come in blocks, because to change what is a step costs as much as some runs do.

/// One run in so many, at most.
pub(crate) const SHARE: u64 = 8;
/// One run in so many, at least.
const LEAST: u64 = 1 << 10;
/// Up to this run blocks are short, so that an exploration of a hundred runs has one.
const SHORT: u64 = 1 << 10;
/// Runs of a short block. Blocks begin at runs that are looked at, so that conflicts are learned from them.
const BLOCK: u64 = 8;
/// Later there is a block in so many runs, unless it would be shorter than that.
const PERIOD: u64 = 1 << 10;

/// What is known of the length of runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Turns {
    ordinary: Lengths,
    handed: Lengths,
}

#[derive(Clone, Copy, Debug, Default)]
struct Lengths {
    runs: u64,
    steps: u64,
}

impl Turns {
    /// Takes in the length of a run.
    pub fn measure(&mut self, handed: bool, steps: u64) {
        let lengths = if handed { &mut self.handed } else { &mut self.ordinary };
        *lengths = Lengths { runs: lengths.runs + 1, steps: lengths.steps.saturating_add(steps) };
    }

    /// One run in so many has such steps: a power of two.
    pub fn every(&self) -> u64 {
        let (ordinary, handed) = (self.ordinary, self.handed);
        if ordinary.runs == 0 || handed.runs == 0 {
            return SHARE;
        }
        // Twice the ratio of the average lengths, so that what they make in all is half of what the others do.
        let mine = u128::from(handed.steps) * u128::from(ordinary.runs) * 2;
        let theirs = u128::from(ordinary.steps.max(1)) * u128::from(handed.runs);
        let ratio = mine.div_ceil(theirs).min(u128::from(LEAST)) as u64;
        ratio.next_power_of_two().clamp(SHARE, LEAST)
    }

    /// The block that a run is in: where it begins, its length, and after how many runs the next one begins.
    fn block(&self, run: u64) -> (u64, u64, u64) {
        let every = self.every();
        let length = if run < SHORT { BLOCK } else { (PERIOD / every).max(BLOCK) };
        let period = length * every;
        (run - run % period, length, period)
    }

    /// Whether a run has such steps, if there are any.
    pub fn is_handed(&self, run: u64) -> bool {
        let (begin, length, _) = self.block(run);
        begin > 0 && run - begin < length
    }

    /// How many runs from this one on are of the same sort, as far as is known.
    pub fn same(&self, run: u64) -> u64 {
        let (begin, length, period) = self.block(run);
        let end = if self.is_handed(run) { begin + length } else { begin + period };
        let end = if run < SHORT { end.min(SHORT) } else { end };
        end - run
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrumentation::is_looked_at;

    #[test]
    fn one_run_in_eight_has_steps_at_what_is_handed_over() {
        let turns = Turns::default();
        let handed = |range: std::ops::Range<u64>| range.filter(|&run| turns.is_handed(run)).count();
        assert_eq!((handed(0..64), handed(64..128), handed(0..1024)), (0, 8, 120));
        assert_eq!(handed(1 << 20..1 << 21), 1 << 17);
        assert!((64..1 << 20).any(|run| turns.is_handed(run) && is_looked_at(run)));
    }

    #[test]
    fn blocks_are_as_long_as_is_said() {
        let mut turns = Turns::default();
        for long in [false, true] {
            let mut run = 0;
            while run < 1 << 16 {
                let end = run + turns.same(run);
                assert!(
                    (run..end).all(|other| turns.is_handed(other) == turns.is_handed(run)),
                    "{run} {long}"
                );
                run = end;
            }
            turns.measure(false, 100);
            turns.measure(true, 5_000);
        }
    }

    #[test]
    fn long_runs_take_at_most_half_of_what_the_others_take() {
        for ratio in [1, 3, 4, 5, 30, 64, 200, 511] {
            let mut turns = Turns::default();
            (0..10).for_each(|_| turns.measure(false, 100));
            (0..3).for_each(|_| turns.measure(true, 100 * ratio));
            assert!(ratio * 2 <= turns.every(), "{ratio}: one in {}", turns.every());
            assert!(turns.every() == SHARE || turns.every() < ratio * 4, "{ratio}");
        }
    }
}
