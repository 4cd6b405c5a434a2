//! One of several equal parts of the runs of a night, so that machines which do not talk to each other share them.
//!
//! Which runs a part has depends on their numbers alone, so all parts together have every run once, whatever their number.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The I-th of N parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Shard {
    /// Which, from 1.
    pub number: u64,
    /// Of how many.
    pub of: u64,
}

impl Shard {
    /// The part that is all there is.
    pub const WHOLE: Shard = Shard { number: 1, of: 1 };

    /// The I-th of N parts; none when there is no such part.
    pub fn new(number: u64, of: u64) -> Option<Shard> {
        (1..=of).contains(&number).then_some(Shard { number, of })
    }

    /// Whether it has the run, case or trial of this number, counted from 0.
    pub fn has(self, index: u64) -> bool {
        index % self.of == self.number - 1
    }

    /// How many of the first `all` numbers it has.
    pub fn share(self, all: u64) -> u64 {
        all / self.of + u64::from(all % self.of >= self.number)
    }

    /// Decisions of a search whose choices say which part a schedule is in. Every part makes one schedule of each combination,
    /// and there are some eight combinations for each part where decisions are between two threads.
    pub fn decisions(self) -> u64 {
        const LEAST: u64 = 6;
        if self.of == 1 { 0 } else { LEAST.max(u64::from(self.of.ilog2()) + 4) }
    }

    /// Whether it has the schedules of a search that begin with these choices.
    pub fn has_choices(self, choices: &[(u64, u32)]) -> bool {
        let first = choices.iter().take_while(|&&(decision, _)| decision < self.decisions());
        // FNV-1a: neighbouring prefixes, which have subtrees of similar size, go to different parts.
        let hash = first
            .flat_map(|&(decision, choice)| [decision, u64::from(choice)])
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, word| (hash ^ word).wrapping_mul(0x0100_0000_01b3));
        self.has(hash >> 16)
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let parsed =
            text.split_once('/').and_then(|(number, of)| Shard::new(number.parse().ok()?, of.parse().ok()?));
        parsed.ok_or_else(|| format!("`{text}` is no part: say 2/5 for the second of five"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_make_up_the_whole() {
        for of in [1, 3, 16] {
            let shards: Vec<Shard> = (1..=of).map(|number| Shard::new(number, of).unwrap()).collect();
            for index in 0..50 {
                assert_eq!(shards.iter().filter(|shard| shard.has(index)).count(), 1);
                let choices = [(0, index as u32 % 3), (2, index as u32 / 3), (900, 1)];
                assert_eq!(shards.iter().filter(|shard| shard.has_choices(&choices)).count(), 1);
            }
            for all in [0, 1, 15, 16, 17, 1000] {
                assert_eq!(shards.iter().map(|shard| shard.share(all)).sum::<u64>(), all);
                for shard in &shards {
                    assert_eq!(shard.share(all), (0..all).filter(|&index| shard.has(index)).count() as u64);
                }
            }
        }
    }

    #[test]
    fn what_is_no_part_is_refused() {
        for text in ["0/3", "4/3", "1", "a/b", "1/0", "", "1/2/3", "-1/2"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
        assert_eq!("2/5".parse::<Shard>().unwrap().to_string(), "2/5");
    }
}
