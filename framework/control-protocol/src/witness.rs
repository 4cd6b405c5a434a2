//! Is what a region shows possible? For the side that made it: the program on the other side can write over all of it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::instrumentation::SITES;
use crate::possible::{ScheduleCheck, impossible, most_in};
use crate::region::{MAGIC, Region, RegionMap, VERSION};
use crate::report::Report;
use crate::settings::{HANDED_OVER, LOOKED_AT, Settings};
use crate::stretch::Stretch;
use crate::told::RunCopy;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Switching;

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
