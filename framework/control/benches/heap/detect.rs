//! A leak of one object in a hundred, watched from outside at the default sampling until it is found.

use crate::load;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use waylay_leaks::region::{Sampling, SharedRegion, Tag};
use waylay_leaks::{HeapWatch, LeakPolicy};

/// How soon it must be found.
const LIMIT: Duration = Duration::from_secs(60);

/// Prints when it was found and whether that was soon enough.
pub(crate) fn until_found() -> bool {
    let region = SharedRegion::create().expect("region");
    let mut command = load::command("leak", 2, u64::MAX / 2);
    region.attach(&mut command, &load::library(), Sampling::default());
    let mut child = command.spawn().expect("measured process");
    let mut watch = HeapWatch::new(LeakPolicy::default());
    let begun = Instant::now();
    let found = loop {
        std::thread::sleep(Duration::from_secs(1));
        let snapshot = region.snapshot();
        // The load has no iterations to count; the samples it has caused serve as well.
        let iterations = BTreeMap::from([(Tag::NONE, snapshot.samples)]);
        if let Some(finding) = watch.observe(&snapshot, &iterations).pop() {
            break Some(finding);
        }
        if begun.elapsed() > Duration::from_secs(120) || child.try_wait().expect("child").is_some() {
            break None;
        }
    };
    child.kill().expect("kill");
    child.wait().expect("reap");
    let took = begun.elapsed();
    let holds = found.is_some() && took <= LIMIT;
    let verdict = if holds { "holds" } else { "DOES NOT HOLD" };
    let (took, limit) = (took.as_secs_f64(), LIMIT.as_secs());
    match found {
        Some(finding) => println!("found after {took:.0} s (at most {limit} s: {verdict}): {finding:#?}"),
        None => println!("not found within {took:.0} s (at most {limit} s: {verdict})"),
    }
    holds
}
