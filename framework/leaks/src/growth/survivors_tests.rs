use super::*;
use crate::growth::history::Point;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn clock(seconds: u64) -> History {
    let mut clock = History::default();
    for second in 0..=seconds {
        clock.push(Point { time: Duration::from_secs(second), iterations: second * 100, value: 0 });
    }
    clock
}

fn born(positions: impl IntoIterator<Item = f64>) -> SiteSnapshot {
    let live = positions.into_iter().map(|second| LiveSample {
        born: Duration::from_secs_f64(second),
        size: 1,
        weight: 1000,
    });
    SiteSnapshot { live: live.collect(), ..SiteSnapshot::default() }
}

fn look(site: &SiteSnapshot) -> Option<Growth> {
    sustained_growth(site, &clock(100), 32, Duration::from_secs(40), Duration::from_secs(100))
}

#[test]
fn evenly_spread_survivors_are_growth() {
    let growth = look(&born((0..200).map(|number| number as f64 / 2.0))).expect("even");
    assert_eq!(growth.samples, 80);
    assert_eq!(growth.bytes, 80_000);
    assert_eq!((growth.iterations, growth.seconds), (4000.0, 40.0));
    assert!(growth.p_value < 1e-15, "{}", growth.p_value);
}

#[test]
fn few_survivors_prove_little() {
    let growth = look(&born([61.0, 72.0, 83.0, 94.0])).expect("even");
    assert!(growth.p_value > 0.01, "{}", growth.p_value);
}

#[test]
fn a_burst_counts_once_however_large() {
    let bursts = [65.0, 95.0].into_iter().flat_map(|start| (0..1000).map(move |n| start + n as f64 * 1e-4));
    let growth = look(&born(bursts)).expect("half and half");
    assert!(growth.p_value > 0.1, "{}", growth.p_value);
}

#[test]
fn deaths_move_the_window_into_the_past() {
    let mut site = born((0..1000).map(|number| number as f64 / 10.0));
    // Class 13 begins at 4.3 s, class 14 at 8.6 s.
    site.deaths[13] = 500;
    let growth = look(&site).expect("older ones survive");
    assert_eq!(growth.samples, 400);
    // Deaths at half a minute and more leave no window that is old enough and inside what was observed.
    site.deaths[17] = 500;
    assert_eq!(look(&site), None);
}

#[test]
fn one_clearing_is_remembered() {
    let mut site = born((0..400).map(|number| 60.0 + number as f64 / 10.0));
    assert!(look(&site).is_some_and(|growth| growth.p_value < 1e-15));
    site.deaths[10..19].fill(300);
    assert_eq!(look(&site), None, "an earlier cycle lived for minutes and died");
}

#[test]
fn windows_before_the_beginning_are_not_looked_at() {
    let site = born((0..100).map(f64::from));
    assert_eq!(
        sustained_growth(&site, &clock(30), 32, Duration::from_secs(40), Duration::from_secs(30)),
        None
    );
    assert_eq!(sustained_growth(&site, &History::default(), 1, Duration::ZERO, Duration::from_secs(1)), None);
}

/// The p-value is one: under the null hypothesis (a survivor is in the newer half with probability 0.1) it
/// falls below a level no more often than the level says. 20,000 draws with a fixed seed; exceeding the
/// expected count by six standard deviations has a probability of about 1e-9.
#[test]
fn the_p_value_keeps_its_level() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    for samples in [10, 40, 200] {
        let mut values = Vec::new();
        for _ in 0..20_000 {
            let mut bins = [0u64; BINS];
            for _ in 0..samples {
                let half = if rng.random::<f64>() < MINOR_SHARE { BINS / 2 } else { 0 };
                bins[half + rng.random_range(0..BINS / 2)] += 1;
            }
            values.push(half_p_value(&bins, &bins[BINS / 2..]));
        }
        for level in [0.1, 0.01, 0.001] {
            let below = values.iter().filter(|value| **value <= level).count() as f64;
            let expected = 20_000.0 * level;
            assert!(below <= expected + 6.0 * expected.sqrt(), "{samples} {level}: {below}");
        }
    }
}
