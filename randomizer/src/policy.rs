//! Which threads, how many, for how long, and when: a pure function of the seed, the settings and the list of
//! threads.
//!
//! Each window draws from a stream of its own, numbered by the window. So what window 1,000 does depends on the seed
//! and on the threads that exist then, not on how many threads there were in the 999 windows before.

use std::time::Duration;

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use waylay_dist::Seed;

use crate::settings::Settings;

/// Where in a window's stream the choice of threads begins. The times and the count before it take a few words each.
const CHOICE: u128 = 1 << 16;

/// Decides.
#[derive(Debug, Clone)]
pub struct Policy {
    settings: Settings,
    /// Only a means: each use sets stream and position, so nothing is carried from one call to the next.
    rng: ChaCha8Rng,
}

/// What one window is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// The window, counted from 0.
    pub window: u64,
    /// Rest before it.
    pub rest: Duration,
    /// How long threads are held.
    pub hold: Duration,
    /// How many threads are wanted.
    pub count: usize,
}

impl Policy {
    /// The policy of one run.
    pub fn new(settings: Settings, seed: Seed) -> Policy {
        Policy { settings, rng: seed.component("randomizer") }
    }

    /// The plan of a window.
    pub fn plan(&mut self, window: u64) -> Plan {
        let Policy { settings, rng } = self;
        rng.set_stream(window);
        rng.set_word_pos(0);
        let rest = settings.period.draw(rng);
        let hold = settings.suspend.draw(rng);
        let count = settings.count.draw(rng);
        Plan { window, rest, hold, count }
    }

    /// Chooses distinct threads for a window, each with the same chance: as many as planned, or all when there are
    /// fewer.
    pub fn choose<T: Copy>(&mut self, plan: &Plan, threads: &[T]) -> Vec<T> {
        let mut left = threads.to_vec();
        if plan.count < left.len() {
            self.rng.set_stream(plan.window);
            self.rng.set_word_pos(CHOICE);
            // The first steps of a Fisher-Yates shuffle: place i gets one of those not yet placed.
            for i in 0..plan.count {
                let other = i + below(&mut self.rng, (left.len() - i) as u64) as usize;
                left.swap(i, other);
            }
            left.truncate(plan.count);
        }
        left
    }
}

/// A number from 0 to `limit` - 1, all alike. Written here because a seed must mean the same for ever, which libraries
/// do not promise for their ranges.
fn below(rng: &mut ChaCha8Rng, limit: u64) -> u64 {
    // The high half of draw × limit is uniform except for the first 2^64 mod limit values of the low half (Lemire,
    // "Fast random integer generation in an interval", 2019).
    let rejected = limit.wrapping_neg() % limit;
    loop {
        let product = u128::from(rng.next_u64()) * u128::from(limit);
        if product as u64 >= rejected {
            return (product >> 64) as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(text: &str, seed: u64) -> Policy {
        Policy::new(Settings::from_toml(text).expect("valid"), Seed::new(seed))
    }

    #[test]
    fn the_same_seed_makes_the_same_choices() {
        let text = "count = { uniform = { min = 1, max = 4 } }";
        let threads: Vec<u32> = (100..120).collect();
        let choices = |mut policy: Policy| -> Vec<_> {
            (0..200)
                .map(|i| {
                    let plan = policy.plan(i);
                    (plan, policy.choose(&plan, &threads))
                })
                .collect()
        };
        assert_eq!(choices(policy(text, 7)), choices(policy(text, 7)));
        assert_ne!(choices(policy(text, 7)), choices(policy(text, 8)));
    }

    #[test]
    fn recorded_choices_never_change() {
        // Golden: a change here makes every stored seed mean something else.
        let mut policy = policy("count = 3", 0x5eed);
        let plan = policy.plan(41);
        let threads: Vec<u32> = (0..10).collect();
        assert_eq!((plan.rest.as_nanos(), plan.hold.as_nanos()), (147_876, 867_458));
        assert_eq!(policy.choose(&plan, &threads), [1, 3, 8]);
    }

    #[test]
    fn a_window_does_not_depend_on_earlier_thread_lists() {
        let mut policy = policy("", 1);
        let plan = policy.plan(0);
        let few = policy.choose(&plan, &[1, 2]);
        let other = policy.plan(7);
        policy.choose(&other, &(0..1000).collect::<Vec<_>>());
        assert_eq!(policy.choose(&plan, &[1, 2]), few);
        assert_eq!(policy.plan(0), plan);
    }

    #[test]
    fn never_more_threads_than_there_are_and_none_twice() {
        let mut policy = policy("count = { uniform = { min = 1, max = 50 } }", 3);
        for i in 0..500 {
            let threads: Vec<u32> = (0..(i as u32 % 40)).collect();
            let plan = policy.plan(i);
            let mut chosen = policy.choose(&plan, &threads);
            assert_eq!(chosen.len(), plan.count.min(threads.len()));
            chosen.sort_unstable();
            chosen.dedup();
            assert_eq!(chosen.len(), plan.count.min(threads.len()));
        }
    }

    #[test]
    fn every_thread_has_the_same_chance() {
        // 80,000 windows, 8 threads, 3 at a time: each is chosen 30,000 times on average with a standard deviation of
        // 137. Six of them: a correct policy fails with probability below 8 · 2e-9.
        let mut policy = policy("count = 3", 11);
        let threads: Vec<usize> = (0..8).collect();
        let mut chosen = [0_i64; 8];
        for i in 0..80_000 {
            let plan = policy.plan(i);
            for thread in policy.choose(&plan, &threads) {
                chosen[thread] += 1;
            }
        }
        assert!(chosen.iter().all(|count| (count - 30_000).abs() < 822), "{chosen:?}");
    }

    #[test]
    fn times_stay_inside_their_distributions() {
        let mut policy = policy("period = { uniform = { min = '10us', max = '20us' } }\nsuspend = '5us'", 2);
        for i in 0..1000 {
            let plan = policy.plan(i);
            assert!((10_000..=20_000).contains(&plan.rest.as_nanos()));
            assert_eq!(plan.hold.as_nanos(), 5_000);
            assert_eq!(plan.count, 1);
        }
    }
}
