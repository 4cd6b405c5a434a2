//! Is what a region shows possible? For the side that made it: the program on the other side can write over all of it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::instrumentation::SITES;
use crate::region::{ACCOUNT, MAGIC, PARAMETERS, Region, RegionMap, STRETCHES, VERSION};
use crate::report::Ending;
use crate::settings::{HANDED_OVER, LOOKED_AT, Settings, Switching};

/// Steps and runs that may have been counted before the first nanosecond is over.
const SLACK_COUNT: u64 = 1_000_000;
/// Far more threads than a run can have.
const MOST_THREADS: u32 = 1 << 24;

/// More orders than a library remembers.
const MOST_ORDERS: u64 = 1 << 20;

/// Far more steps than a strategy plans with.
const MOST_PLANNED: u64 = 1 << 48;

impl RegionMap {
    /// What the region shows that no library writes, if it is in use for so long.
    pub fn contradiction(&self, age: Duration) -> Option<String> {
        // SAFETY: mapped for as long as `self` lives; the words are plain integers, valid whatever they hold.
        let (magic, version, size) = unsafe {
            (
                (&raw const (*self.at).magic).read_volatile(),
                (&raw const (*self.at).version).read_volatile(),
                (&raw const (*self.at).size).read_volatile(),
            )
        };
        if (magic, version, size) != (MAGIC, VERSION, size_of::<Region>() as u32) {
            return Some("the head of the control region is not as we wrote it".to_owned());
        }
        let settings = self.settings();
        // The library of a process that learns chooses sites itself, and which runs are looked at.
        let ours =
            |prepared: Settings| Settings { chosen: settings.chosen, profile: settings.profile, ..prepared };
        let chosen = settings.chosen as usize <= SITES + 1 && settings.profile <= LOOKED_AT | HANDED_OVER;
        if !chosen || self.prepared.is_some_and(|prepared| ours(prepared) != settings) {
            return Some("the settings of the schedules are not as we wrote them".to_owned());
        }
        let report = self.report();
        let most = (age.as_nanos().min(u128::from(u64::MAX)) as u64).saturating_add(SLACK_COUNT);
        let word = |word: &AtomicU32| word.load(Ordering::Acquire);
        let long = |word: &AtomicU64| word.load(Ordering::Acquire);
        if Ending::from_code(word(&report.ending)).is_none() {
            return Some(format!("a schedule ended in way {}", word(&report.ending)));
        }
        if Switching::from_code(word(&report.switching)).is_none() {
            return Some(format!("threads are switched in way {}", word(&report.switching)));
        }
        let lengths = [
            ("what the run tells about itself", u64::from(word(&report.account)), ACCOUNT as u64),
            ("what is handed over", u64::from(word(&report.handed)), PARAMETERS as u64),
            ("the schedule", long(&report.stretches), STRETCHES as u64),
            ("the number of threads", u64::from(word(&report.threads)), u64::from(MOST_THREADS)),
            ("the most threads", u64::from(word(&report.tally.threads)), u64::from(MOST_THREADS)),
            ("what is incomplete", u64::from(word(&report.cut)), 1),
            ("what was not controlled", u64::from(word(&report.partly_controlled)), 1),
            ("the number of steps", long(&report.steps), most),
            ("the number of schedules", long(&report.tally.runs), most),
            ("the steps of all schedules", long(&report.tally.steps), most),
            ("the longest schedule", long(&report.tally.longest), most),
            ("the length that was planned with", long(&report.tally.reach), MOST_PLANNED),
            ("the schedules partly controlled", long(&report.tally.partly_controlled), most),
            ("the repeated schedules", long(&report.tally.repeats), most),
            ("the orders seen", long(&report.tally.orders[0]), long(&report.tally.orders[1])),
            ("the orders that are possible", long(&report.tally.orders[1]), MOST_ORDERS),
            ("the schedules listened to", long(&report.tally.orders[2]), most),
            ("the end for want of new orders", long(&report.tally.orders[4]), 1),
            ("the last schedule with a new order", long(&report.tally.orders[3]), MOST_PLANNED),
        ];
        if let Some((what, value, most)) = lengths.iter().find(|(_, value, most)| value > most) {
            return Some(format!("{what}: {value}, and {most} is the most that there can be"));
        }
        let aimed = report.tally.aimed.iter().map(long).find(|runs| *runs > most);
        aimed.map(|runs| format!("{runs} schedules aimed at one depth"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGE: Duration = Duration::from_secs(1);

    fn region() -> RegionMap {
        let mut region = RegionMap::create().unwrap();
        region.prepare(Settings::new(Switching::Carrier, 7, 3), "{}").unwrap();
        assert_eq!(region.contradiction(AGE), None);
        region
    }

    #[test]
    fn every_word_that_is_written_over_shows() {
        let settings = region();
        // SAFETY: our own region, which nobody else has.
        unsafe { (*settings.at).settings.seed = 8 };
        assert!(settings.contradiction(AGE).unwrap().contains("settings"));
        let ending = region();
        ending.report().ending.store(77, Ordering::Relaxed);
        assert!(ending.contradiction(AGE).unwrap().contains("ended in way 77"));
        let runs = region();
        runs.report().tally.runs.store(u64::MAX / 2, Ordering::Relaxed);
        assert!(runs.contradiction(AGE).is_some());
        let aimed = region();
        aimed.report().tally.aimed[3].store(u64::MAX, Ordering::Relaxed);
        assert!(aimed.contradiction(AGE).is_some());
    }

    /// Garbage of every seed shows, and reading it ends nothing.
    #[test]
    fn garbage_is_seen_and_can_be_read() {
        for fill in [0, 0xff, 0x5a, 1] {
            let region = region();
            // SAFETY: the head of our own region, which nobody else has.
            unsafe { region.at.cast::<u8>().write_bytes(fill, 1 << 16) };
            assert!(region.contradiction(AGE).is_some(), "{fill}");
            let _ = (region.text(), region.handed(), region.ending(), region.parameters().len());
        }
    }
}
