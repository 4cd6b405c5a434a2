//! The memory that a strict host shares with us, read as plain data.

use std::cell::RefCell;
use std::io;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;

use waylay_control_protocol::{Account, Added, Ending, REGION_VARIABLE, RegionMap, Report, Site, SiteList};
use waylay_schedule::coverage::OrdersSeen;
use waylay_schedule::promise::Aimed;
use waylay_schedule::{EventKind, Handover, RunParameters, Schedule, Segment, ThreadId};

use super::told::{Past, PlainSteps, RunTotals, StoppedBy};
use crate::config::Strict;

/// How often the first schedule of a host is made again at most: a thing made on first use may need another one, but hardly
/// a chain of so many.
const SETTLE: u32 = 8;

/// The region of one host.
#[derive(Debug)]
pub(crate) struct ControlRegion {
    region: RegionMap,
    /// What the first run is given.
    parameters: RunParameters,
    /// The sums when they were last possible.
    believed: RefCell<RunTotals>,
}

impl ControlRegion {
    /// A region for a host that repeats schedules; the first is given `parameters`, and plain accesses at `sites` are steps.
    pub(crate) fn prepare(
        strict: &Strict,
        seed: u64,
        parameters: &RunParameters,
        sites: &[Site],
    ) -> io::Result<ControlRegion> {
        // Plugins that were compiled for it have steps of their own; those that were not are patched.
        let mut region = strict.conditions.region(true).map_err(io::Error::other)?;
        let mut settings = strict.conditions.settings(seed, 0);
        settings.in_process = 1;
        settings.hold = 1;
        settings.settle = SETTLE;
        settings.quiet = strict.stop_after_quiet.map_or(0, |quiet| quiet.get());
        if strict.conditions.level.sees_accesses() {
            region.choose(&mut settings, sites);
            region.learn(&mut settings, sites.len());
        }
        let text = serde_json::to_string(parameters)?;
        region.prepare(settings, &text).map_err(io::Error::other)?;
        Ok(ControlRegion { region, parameters: parameters.clone(), believed: RefCell::default() })
    }

    /// The descriptor that the host inherits.
    pub(crate) fn descriptor(&self) -> i32 {
        self.region.descriptor().unwrap_or(-1)
    }

    /// Tells the host where the region is.
    pub(crate) fn announce(&self, command: &mut Command) {
        command.env(REGION_VARIABLE, self.descriptor().to_string());
    }

    /// Looks at what the library shows, and believes its sums unless it cannot be.
    pub(crate) fn observe(&self, age: Duration) -> Result<(), String> {
        let report = self.region.possible_report(age)?;
        *self.believed.borrow_mut() = self.totals(&report);
        Ok(())
    }

    /// The sums over all runs of the process, as they were last believed.
    pub(crate) fn believed(&self) -> RunTotals {
        self.believed.borrow().clone()
    }

    /// What the library found out itself.
    pub(crate) fn stopped_by(&self) -> Option<StoppedBy> {
        match self.region.ending() {
            Ending::Deadlock => Some(StoppedBy::Deadlock),
            Ending::StepLimit | Ending::Awaiting => Some(StoppedBy::StepLimit),
            Ending::Livelock => Some(StoppedBy::Livelock),
            Ending::Race => Some(StoppedBy::Race),
            Ending::Refused => Some(StoppedBy::Refused),
            Ending::Unfinished | Ending::Exited => None,
        }
    }

    /// Nobody under control can run, and something that is not is awaited.
    pub(crate) fn awaits(&self) -> bool {
        self.region.report().awaits.load(Ordering::Relaxed) != 0
    }

    /// What the run told about itself.
    pub(crate) fn account(&self) -> Account {
        self.region.account()
    }

    /// The schedule of the last run, as far as it came.
    pub(crate) fn schedule(&self) -> Schedule {
        let segment = |stretch: &waylay_control_protocol::Stretch| {
            let first = u8::try_from(stretch.first).ok().and_then(EventKind::from_code)?;
            Some(Segment { thread: ThreadId(stretch.thread), first, steps: stretch.steps })
        };
        Schedule::new(self.region.schedule().iter().map_while(segment))
    }

    /// Whether the schedule is incomplete.
    pub(crate) fn is_cut(&self) -> bool {
        self.region.report().cut.load(Ordering::Relaxed) != 0
    }

    /// Whether a thread of the last run read what a store of another was to change that waited.
    pub(crate) fn stores_waited(&self) -> bool {
        self.region.report().delayed.count.load(Ordering::Relaxed) != 0
    }

    /// Whether something outside the library's control took part in the last run.
    pub(crate) fn is_partly_controlled(&self) -> bool {
        self.region.report().partly_controlled.load(Ordering::Relaxed) != 0
    }

    /// What the process left for the next one.
    pub(crate) fn handover(&self) -> Option<Handover> {
        serde_json::from_str(&self.region.handed()).ok()
    }

    /// What the process was given, and what it began with; none if it has not, or the library does not say.
    pub(crate) fn past(&self) -> Option<Past> {
        let tally = &self.region.report().tally;
        Some(Past {
            first: tally.first.load(Ordering::Relaxed).checked_sub(1)?,
            repeats: tally.repeats.load(Ordering::Relaxed),
            parameters: self.parameters.clone(),
            sites: self.region.learns_from().unwrap_or(0),
        })
    }

    /// Where plain accesses were steps in the last run, and whether it was looked which others should be; none at levels
    /// without.
    pub(crate) fn steps(&self) -> Option<PlainSteps> {
        let sites = self.region.chosen_now()?;
        let settings = self.region.settings();
        Some(PlainSteps { sites, looked_at: settings.is_looked_at(), handed: settings.has_handed() })
    }

    /// Where plain accesses are steps, with what the last run showed.
    pub(crate) fn learned(&self) -> Vec<Site> {
        let mut sites = self.region.chosen_now().unwrap_or_default();
        let mut known = SiteList::of(&sites);
        let shown = self.region.conflicting_now().into_iter().filter(|site| !site.is_handed());
        sites.extend(shown.filter(|&site| known.add(site) != Added::Known));
        sites
    }

    /// The sums over all runs of the process.
    fn totals(&self, report: &Report) -> RunTotals {
        let tally = &report.tally;
        RunTotals {
            runs: tally.runs.load(Ordering::Relaxed),
            steps: tally.steps.load(Ordering::Relaxed),
            longest: tally.longest.load(Ordering::Relaxed),
            threads: tally.threads.load(Ordering::Relaxed),
            partly_controlled: tally.partly_controlled.load(Ordering::Relaxed),
            looked_at: tally.looked_at.load(Ordering::Relaxed),
            accesses: tally.accesses.load(Ordering::Relaxed),
            limited: tally.limited.load(Ordering::Relaxed),
            limited_places: report.limited_places().into_iter().collect(),
            refused_places: report.refused_places().into_iter().collect(),
            overlooked_places: report.overlooked_places().into_iter().collect(),
            loaded: report.loaded_libraries().into_iter().collect(),
            overlooked: report.overlooked.load(Ordering::Relaxed) != 0,
            calls_over: report.calls_over.load(Ordering::Relaxed) != 0,
            places: places(&self.region.chosen_now().unwrap_or_default()),
            patched: report.patched.load(Ordering::Relaxed).into(),
            refused: report.refused.load(Ordering::Relaxed).into(),
            orders: {
                let [seen, predicted, runs, last_new] =
                    [0, 1, 2, 3].map(|place| tally.orders[place].load(Ordering::Relaxed));
                OrdersSeen { seen, predicted, runs, last_new }
            },
            quiet: tally.orders[4].load(Ordering::Relaxed) != 0,
            aimed: Aimed {
                reach: tally.reach.load(Ordering::Relaxed),
                runs: tally.aimed.iter().map(|runs| runs.load(Ordering::Relaxed)).collect(),
                failures: Vec::new(),
            },
        }
    }
}

/// The places in code among sites, which also name kinds of memory.
fn places(sites: &[Site]) -> u64 {
    SiteList::of(sites).places() as u64
}

#[cfg(test)]
mod tests {
    use waylay_control_protocol::{Level, RunConditions};

    use super::*;

    fn strict(level: Level) -> Strict {
        Strict { conditions: RunConditions::of_test(level), ..Strict::of(waylay_schedule::Spec::Random) }
    }

    #[test]
    fn what_one_host_learned_the_next_begins_with() {
        let parameters = RunParameters::of("random");
        let first = ControlRegion::prepare(&strict(Level::Auto), 7, &parameters, &[Site(3)]).unwrap();
        let library = RegionMap::open(first.descriptor()).unwrap();
        assert_eq!((library.chosen(), library.learns_from()), (Some(&[Site(3)][..]), Some(1)));
        library.choose_also(Site(4));
        library.look_at(true);
        library.add_conflicting(Site(5));
        library.add_conflicting(Site(3));
        // The run that is going on has what was chosen before it; the next has what it showed as well.
        assert_eq!(
            first.steps(),
            Some(PlainSteps { sites: vec![Site(3), Site(4)], looked_at: true, handed: false })
        );
        assert_eq!(first.learned(), [Site(3), Site(4), Site(5)]);
        let atomics = ControlRegion::prepare(&strict(Level::Atomics), 7, &parameters, &[]).unwrap();
        assert_eq!((atomics.steps(), atomics.learned()), (None, Vec::new()));
    }
}
