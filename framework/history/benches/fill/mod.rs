//! A history of many nights: 10,000 campaigns, ten a night, with 100,000 different failures of 20 tests.

use std::path::Path;

use jiff::{Span, Timestamp};
use waylay_history::History;
use waylay_history::sighting::Sighting;

use crate::support;

/// Campaigns.
pub(crate) const CAMPAIGNS: u64 = 10_000;
/// New failures of each.
pub(crate) const NEW: u64 = 10;
const TESTS: [&str; 20] = [
    "channel",
    "map",
    "queue",
    "tree",
    "sort",
    "cache",
    "pool",
    "stack",
    "ring",
    "list",
    "skiplist",
    "arena",
    "timer",
    "barrier",
    "latch",
    "once",
    "rwlock",
    "semaphore",
    "deque",
    "bag",
];

/// Fills it.
pub(crate) fn fill(out: &Path) {
    let mut history = History::open(out).unwrap();
    let begin: Timestamp = "2024-01-01T22:00:00Z".parse().unwrap();
    let tests: Vec<(&str, u64)> = TESTS.iter().map(|name| (*name, 1_000_000)).collect();
    for number in 0..CAMPAIGNS {
        let started = begin + Span::new().hours((number / 10 * 24) as i64).minutes((number % 10 * 40) as i64);
        let mut record = support::record(&format!("c-{number:05}"), started, &tests);
        record.updated = started + Span::new().minutes(39);
        let failure = |signature: u64| {
            let test = TESTS[(signature % 20) as usize];
            Sighting::of(&support::entry(&format!("deadlock-{signature:016x}"), Some(test), 3, started))
        };
        let new = (0..NEW).map(|place| failure(number * NEW + place));
        // And some of the last nights again.
        let old = (1..5u64).filter_map(|before| (number * NEW).checked_sub(before * 37)).map(failure);
        let sightings: Vec<Sighting> = new.chain(old).collect();
        record.signatures = sightings.len() as u64;
        record.failures = 3 * record.signatures;
        history.put(&record, &sightings, &support::utc()).unwrap();
    }
}
