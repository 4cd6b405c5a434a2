//! Is what a region shows possible? For the side that made it: the program on the other side can write over all of it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::copied::RunCopy;
use crate::instrumentation::SITES;
use crate::region::{ACCOUNT, MAGIC, PARAMETERS, Region, RegionMap, STRETCHES, VERSION};
use crate::report::{Ending, HeldAt, Report};
use crate::settings::{HANDED_OVER, LOOKED_AT, Settings, Switching};
use crate::stretch::Stretch;

/// Steps and runs that may have been counted before the first nanosecond is over.
const SLACK_COUNT: u64 = 1_000_000;
/// Far more threads than a run can have.
const MOST_THREADS: u32 = 1 << 20;
/// Far more instructions than are patched in a program and all its libraries.
const MOST_MOVED: u64 = 1 << 20;

/// More orders than a library remembers.
const MOST_ORDERS: u64 = 1 << 20;

/// Far more steps than a strategy plans with.
const MOST_PLANNED: u64 = 1 << 48;

/// More than a library can have counted in so much time.
pub fn most_in(age: Duration) -> u64 {
    (age.as_nanos().min(u128::from(u64::MAX)) as u64).saturating_add(SLACK_COUNT)
}

impl RegionMap {
    /// What the region shows that no library writes, if it is in use for so long.
    pub fn contradiction(&self, age: Duration) -> Option<String> {
        self.possible_report(age).err()
    }

    /// What the library reports, as it is now, if that can be in a region that is in use for so long; else why it cannot.
    pub fn possible_report(&self, age: Duration) -> Result<Box<Report>, String> {
        let report = self.report_now();
        match self.contradiction_in(&report, age) {
            Some(why) => Err(why),
            None => Ok(report),
        }
    }

    /// The recorded schedule, up to what cannot be. After a run that died, the last stretch is what was counted until then.
    pub fn schedule(&self) -> Vec<Stretch> {
        let mut check = ScheduleCheck::new(u64::MAX);
        let mut schedule = self.schedule_of(self.report(), |stretch| check.add(stretch));
        if check.fault.is_some() {
            schedule.pop();
        }
        schedule
    }

    /// What shows, of all that the two sides share when many runs are ordered at once, that the program wrote over it.
    pub fn contradiction_of_batch(&self) -> Option<String> {
        self.contradiction_in_head()
    }

    /// What the last run told, if it can have been, in a region that is in use for so long; else why it cannot.
    pub fn copied(&self, age: Duration) -> Result<RunCopy, String> {
        let report = self.possible_report(age)?;
        let most = most_in(age);
        let mut check = ScheduleCheck::new(most);
        let schedule = self.schedule_of(&report, |stretch| check.add(stretch));
        if let Some(why) = check.fault {
            return Err(why);
        }
        let begun = report
            .tally
            .runs
            .load(Ordering::Relaxed)
            .saturating_add(report.tally.repeats.load(Ordering::Relaxed));
        Ok(RunCopy {
            schedule,
            notes: self.notes_of(&report),
            conflicting: self.conflicting_of(&report),
            account: self.account_of(&report),
            reached: self.recalls().is_none_or(|earlier| begun > earlier.count()),
            report,
        })
    }

    fn contradiction_in_head(&self) -> Option<String> {
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
        if let Some(what) = self.changed() {
            return Some(format!("{what} are not as we wrote them"));
        }
        let threads = self.batch().impossible_wish()?;
        Some(format!("{threads} threads are to be made in advance"))
    }

    fn contradiction_in(&self, report: &Report, age: Duration) -> Option<String> {
        if let Some(why) = self.contradiction_in_head() {
            return Some(why);
        }
        let settings = self.settings();
        // The library of a process that learns chooses sites itself, and which runs are looked at.
        let ours =
            |prepared: Settings| Settings { chosen: settings.chosen, profile: settings.profile, ..prepared };
        let chosen = settings.chosen as usize <= SITES + 1 && settings.profile <= LOOKED_AT | HANDED_OVER;
        if !chosen || self.prepared.is_some_and(|prepared| ours(prepared) != settings) {
            return Some("the settings of the schedules are not as we wrote them".to_owned());
        }
        impossible(report, most_in(age))
    }
}

/// What a report says that no library writes, if nothing can have been counted more often than `most`.
pub(crate) fn impossible(report: &Report, most: u64) -> Option<String> {
    let word = |word: &AtomicU32| word.load(Ordering::Acquire);
    let long = |word: &AtomicU64| word.load(Ordering::Acquire);
    if Ending::from_code(word(&report.ending)).is_none() {
        return Some(format!("a schedule ended in way {}", word(&report.ending)));
    }
    if Switching::from_code(word(&report.switching)).is_none() {
        return Some(format!("threads are switched in way {}", word(&report.switching)));
    }
    if word(&report.held) != 0 && HeldAt::from_code(word(&report.held)).is_none() {
        return Some(format!("a process is held in way {}", word(&report.held)));
    }
    let most_threads = u64::from(MOST_THREADS);
    let lengths = [
        ("what the run tells about itself", u64::from(word(&report.account)), ACCOUNT as u64),
        ("what is handed over", u64::from(word(&report.handed)), PARAMETERS as u64),
        ("the schedule", long(&report.stretches), STRETCHES as u64),
        ("what was said of the schedule", long(&report.notes), most),
        ("the number of threads", u64::from(word(&report.threads)), most_threads),
        ("the most threads", u64::from(word(&report.tally.threads)), most_threads),
        ("the store buffers", long(&report.delayed.flushers), most_threads),
        ("the stores that waited", long(&report.delayed.count), most),
        ("what is incomplete", u64::from(word(&report.cut)), 1),
        ("what was not controlled", u64::from(word(&report.partly_controlled)), 1),
        ("the number of steps", long(&report.steps), most),
        ("the steps that count", long(&report.reach), MOST_PLANNED),
        ("the number of switches", long(&report.switches), most),
        ("the steps that threads were made to take", long(&report.forced), most),
        ("the step at which the schedule was left", long(&report.diverged), most),
        ("the number of accesses", long(&report.accesses), most),
        ("the list of moved instructions", long(&report.moved_count), MOST_MOVED),
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

/// What a recorded schedule shows that nobody records, if no more steps than `most` can have been made.
pub(crate) fn impossible_schedule(schedule: &[Stretch], most: u64) -> Option<String> {
    let mut check = ScheduleCheck::new(most);
    let _ = schedule.iter().all(|stretch| check.add(stretch));
    check.fault
}

/// Looks at a schedule, stretch by stretch.
struct ScheduleCheck {
    steps: u64,
    most: u64,
    fault: Option<String>,
}

impl ScheduleCheck {
    fn new(most: u64) -> ScheduleCheck {
        ScheduleCheck { steps: 0, most, fault: None }
    }

    /// Says whether it can be.
    fn add(&mut self, stretch: &Stretch) -> bool {
        self.steps = self.steps.saturating_add(stretch.steps);
        self.fault = match stretch {
            // A stretch is begun with its first step.
            Stretch { steps: 0, .. } => Some("nothing was done in a part of the schedule".to_owned()),
            Stretch { thread, .. } if *thread >= MOST_THREADS => {
                Some(format!("thread {thread} is scheduled"))
            }
            _ if self.steps > self.most => Some(format!("the schedule has {} steps", self.steps)),
            _ => None,
        };
        self.fault.is_none()
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
