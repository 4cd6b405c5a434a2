//! How the iterations of a mix are divided among shards.
//!
//! Tests of a mix run inside of hosts, where a strategy learns from every schedule; so a shard cannot leave out every other
//! one. The night is divided into lots instead, whose number and sizes depend on what is to be run and not on how many shards
//! there are. Each lot is a campaign of its own, with a seed of its own, and shard I of N has every N-th lot. The set of
//! (seed, schedule) is therefore the same for any N. The first lot has the seed of the night.
//!
//! Where time decides when tests end, a lot has no end, and each shard has one.

use waylay_dist::Seed;
use waylay_schedule::Shard;

/// A lot has at least so many iterations of the test with the most: starting a host costs about as much as some dozens.
const LEAST: u64 = 64;
/// And there are at most so many lots.
const MOST_LOTS: u64 = 1024;

/// How a night of a mix is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lots {
    /// How many there are.
    pub count: u64,
    /// Whether iterations are divided; otherwise each lot lasts as long as the whole night.
    pub bounded: bool,
}

impl Lots {
    /// The lots of tests of which the longest has so many iterations; none when time decides.
    pub fn of(most_iterations: Option<u64>, shards: u64) -> Lots {
        match most_iterations {
            Some(most) => Lots { count: most.div_ceil(LEAST).clamp(1, MOST_LOTS), bounded: true },
            None => Lots { count: shards, bounded: false },
        }
    }

    /// Those of one shard.
    pub fn of_shard(self, shard: Shard) -> impl Iterator<Item = u64> {
        (0..self.count).filter(move |lot| shard.has(*lot))
    }

    /// How many of a test's iterations a lot has.
    pub fn share(self, iterations: u64, lot: u64) -> u64 {
        if self.bounded { Shard { number: lot + 1, of: self.count }.share(iterations) } else { iterations }
    }
}

/// The seed of a lot.
pub fn seed(night: Seed, lot: u64) -> Seed {
    if lot == 0 { night } else { night.derive("lot of a night", u32::try_from(lot).unwrap_or(u32::MAX)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lots_do_not_depend_on_the_number_of_shards_and_make_up_the_whole() {
        for iterations in [1, 63, 64, 65, 1000, 1_000_000] {
            let lots = Lots::of(Some(iterations), 1);
            assert_eq!(lots, Lots::of(Some(iterations), 16));
            assert_eq!((0..lots.count).map(|lot| lots.share(iterations, lot)).sum::<u64>(), iterations);
            for of in [1, 3, 16] {
                let mut all: Vec<u64> =
                    (1..=of).flat_map(|number| lots.of_shard(Shard::new(number, of).unwrap())).collect();
                all.sort_unstable();
                assert_eq!(all, (0..lots.count).collect::<Vec<_>>());
            }
        }
        assert!(Lots::of(Some(u64::MAX), 1).count <= MOST_LOTS);
    }

    #[test]
    fn where_time_decides_each_shard_has_a_lot_of_its_own() {
        let lots = Lots::of(None, 4);
        assert_eq!(lots.of_shard(Shard::new(3, 4).unwrap()).collect::<Vec<_>>(), [2]);
        assert_eq!(lots.share(7, 2), 7);
    }

    #[test]
    fn seeds_are_different_and_the_first_is_the_night_s() {
        let night = Seed::new(7);
        assert_eq!(seed(night, 0), night);
        let seeds: std::collections::BTreeSet<u64> = (0..1000).map(|lot| seed(night, lot).get()).collect();
        assert_eq!(seeds.len(), 1000);
    }
}
