//! Strict tests in a campaign: what their hosts are given, what is summed up over all of them, and what a failing
//! schedule is made of.
//!
//! A host runs schedules of one test and is thrown away after a failure. What the strategy had learned, or where a search
//! stands, goes from one host to the next. How a failing schedule is run again in a fresh process is not known here: an
//! [`Examiner`] does that.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::time::Duration;

use waylay_control_protocol::Site;
use waylay_control_protocol::report::LIMITED;
use waylay_dist::Seed;
use waylay_evidence::ThreadStack;
use waylay_evidence::Unseen;
use waylay_host::plan::SchedulePlan;
use waylay_report::cause::Why;
use waylay_schedule::promise::{headline, promises};
use waylay_schedule::{RunParameters, Schedule, Spec};

use crate::config::Strict;
use crate::dumps::Dumper;
use crate::failure::{Kind, Signature};
use crate::host::{ControlRegion, RunTotals};
pub use crate::host::{Past, PlainSteps};
use crate::record::StrictNumbers;
use crate::report::{Covered, PlaceNames, count, ledger, left_out, libraries_at, plural};
use crate::store::Dumped;

/// One strict test over all of its hosts.
#[derive(Clone, Debug)]
pub(crate) struct StrictTest {
    strict: Strict,
    seed: u64,
    past: RunTotals,
    /// What the next host begins with.
    next: Option<RunParameters>,
    /// Where plain accesses are steps, in the order in which that was learned.
    sites: Vec<Site>,
    /// What code of the plugins leaves to others.
    unseen: Unseen,
    /// One schedule of it, and how long that may take, as its hosts made them.
    schedule: Option<(SchedulePlan, Duration)>,
    /// What places in that code are called.
    names: PlaceNames,
    pub(crate) exhausted: bool,
    /// Schedules after which threads were left, and the host had to be replaced.
    pub(crate) left_behind: u64,
    /// Schedules that were stopped at the limit of steps, and so not judged.
    limit_reached: u64,
    pub(crate) unconfirmed: u64,
    pub(crate) spent: Duration,
}

impl StrictTest {
    /// The seed of a test's schedules comes from the campaign's and the test's name. `plugins` are its own and those of what it
    /// contains.
    pub(crate) fn new(strict: Strict, name: &str, plugins: &[&Path], seed: Seed) -> StrictTest {
        let seed = seed.derive(&format!("schedules of {name}"), 0);
        StrictTest {
            unseen: Unseen::of_all(plugins.iter().copied()),
            names: PlaceNames::of_all(plugins.iter().copied()),
            ..StrictTest::seeded(strict, seed)
        }
    }

    /// A test whose schedules have this seed themselves, whatever its name is.
    pub(crate) fn seeded(strict: Strict, seed: Seed) -> StrictTest {
        StrictTest {
            strict,
            seed: seed.get(),
            past: RunTotals::default(),
            next: None,
            sites: Vec::new(),
            unseen: Unseen::default(),
            schedule: None,
            names: PlaceNames::default(),
            exhausted: false,
            left_behind: 0,
            limit_reached: 0,
            unconfirmed: 0,
            spent: Duration::ZERO,
        }
    }

    /// Sums over all hosts that are gone.
    pub(crate) fn totals(&self) -> &RunTotals {
        &self.past
    }

    /// A schedule was stopped at the limit of steps, or waited for the world until it was late. True when that is a failure; else it is counted.
    pub(crate) fn fails_at_limit(&mut self) -> bool {
        self.limit_reached += u64::from(!self.strict.limit_is_failure);
        self.strict.limit_is_failure
    }

    /// Why the test has shown nothing, if each of its schedules was stopped at the limit of steps.
    pub(crate) fn came_to_nothing(&self) -> Option<String> {
        let all = self.past.runs > 0 && self.limit_reached == self.past.runs;
        all.then(|| {
            format!(
                "each of its {} reached the limit of {} steps or of time, and none was judged (max-steps raises it, limit-is-failure \
                 makes it a failure)",
                plural(self.past.runs, "schedule"),
                count(self.strict.conditions.max_steps)
            )
        })
    }

    /// Whether enough schedules were stopped at the limit, and no other, to expect nothing else: each costs all of its steps
    /// and a host.
    pub(crate) fn is_hopeless(&self) -> bool {
        const ENOUGH: u64 = 10;
        self.limit_reached >= ENOUGH && self.limit_reached == self.past.runs
    }

    /// A region for the next host.
    pub(crate) fn prepare(&self) -> io::Result<ControlRegion> {
        let fresh = || RunParameters::of(self.strict.strategy.to_string());
        // The members of a portfolio have parameters of their own, which do not say where the portfolio stands.
        let known = self.next.clone().filter(|next| next.strategy == fresh().strategy);
        ControlRegion::prepare(&self.strict, self.seed, &known.unwrap_or_else(fresh), &self.sites)
    }

    /// Hosts make such schedules of the test.
    pub(crate) fn makes(&mut self, plan: SchedulePlan, patience: Duration) {
        self.schedule = Some((plan, patience));
    }

    /// What has to be known of libraries of the system before a promise leaves them out; none where nothing is promised, or none
    /// of their accesses could be a step.
    pub(crate) fn look(&self) -> Option<LibraryLook> {
        let steps = self.strict.conditions.level.sees_accesses() && self.strict.conditions.patch;
        let worth_it = steps && !self.unseen.libraries.is_empty();
        if !worth_it || self.numbers(None, Duration::ZERO).guarantee.is_none() {
            return None;
        }
        let (plan, patience) = self.schedule.clone()?;
        Some(LibraryLook {
            plan,
            strict: self.strict.clone(),
            seed: self.seed,
            sites: self.sites.clone(),
            libraries: self.unseen.libraries.clone(),
            patience,
        })
    }

    /// These libraries have accesses that conflict, at these places, and no others have.
    pub(crate) fn leaves_out(&mut self, conflicts: &LibraryConflicts) {
        let told = |(library, sites): (&String, &BTreeSet<u64>)| {
            let worst: Vec<u64> = sites.iter().copied().take(LIMITED).collect();
            format!("{library} ({})", self.names.names(&worst).join(", "))
        };
        self.unseen.libraries = conflicts.iter().map(told).collect();
    }

    /// Takes over what a host that is gone did, and what it left and learned unless that is not to be believed.
    pub(crate) fn account(&mut self, region: &ControlRegion, corrupted: bool) {
        let corrupted = corrupted || region.observe(Duration::MAX).is_err();
        let mut totals = region.believed();
        self.unseen.add(libraries_at(&Vec::from_iter(totals.loaded.iter().copied())));
        if corrupted {
            self.past.add(&totals);
            self.next = None;
            return;
        }
        let learned = region.learned();
        // Schedules without some of the steps promise nothing about these.
        if adds_steps(&learned, &self.sites) {
            self.past.aimed.forget();
            // Behind a place that waits, steps are others than they were, and so is their number.
            if learned[self.sites.len()..].iter().any(|site| site.is_wait()) {
                self.past.aimed.reach = 0;
            }
        }
        if region.steps().is_some_and(|steps| adds_steps(&learned, &steps.sites)) {
            totals.aimed.forget();
        }
        self.past.add(&totals);
        self.sites = learned;
        if let Some(handover) = region.handover() {
            // The test can write there, too: only a search comes to an end, and the next host can do with nothing but a strategy.
            self.exhausted |= handover.next.is_none() && self.may_be_exhausted();
            self.next = handover.next.filter(|next| next.strategy.parse::<Spec>().is_ok());
        }
    }

    /// Whether its schedules can come to an end by themselves: those of a search, or when nothing new is seen any more.
    pub(crate) fn may_be_exhausted(&self) -> bool {
        self.strict.strategy.searches() || self.strict.stop_after_quiet.is_some()
    }

    /// The failing schedule that stands in the region.
    pub(crate) fn failed(
        &self,
        region: &ControlRegion,
        plan: SchedulePlan,
        kind: Kind,
        patience: Duration,
    ) -> FailedSchedule {
        let fallback = || RunParameters::of(self.strict.strategy.to_string());
        FailedSchedule {
            plan,
            strict: self.strict.clone(),
            seed: self.seed,
            parameters: region.handover().map_or_else(fallback, |handover| handover.run),
            kind,
            schedule: region.schedule(),
            past: region.past(),
            steps: region.steps(),
            cut: region.is_cut(),
            partly_controlled: region.is_partly_controlled(),
            patience,
            explaining: Duration::MAX,
        }
    }

    /// The numbers for the report.
    pub(crate) fn numbers(&self, running: Option<&ControlRegion>, running_for: Duration) -> StrictNumbers {
        let mut sum = self.past.clone();
        if let Some(region) = running {
            if let Some(steps) = region.steps()
                && adds_steps(&steps.sites, &self.sites)
            {
                sum.aimed.forget();
                if steps.sites[self.sites.len()..].iter().any(|site| site.is_wait()) {
                    sum.aimed.reach = 0;
                }
            }
            sum.add(&region.believed());
        }
        let steps = if sum.aimed.reach > 0 { sum.aimed.reach } else { sum.longest };
        let parameters = RunParameters::of(self.strict.strategy.to_string());
        let mut guarantees = promises(&parameters, sum.threads, &sum.aimed);
        let covered = Covered {
            level: self.strict.conditions.level,
            patch: self.strict.conditions.patch,
            patched: sum.patched,
            refused: sum.refused,
            refused_places: self.names.names(&Vec::from_iter(sum.refused_places)),
            accesses: sum.accesses,
            limited: sum.limited,
            limited_places: self.names.names(&Vec::from_iter(sum.limited_places)),
            overlooked: sum.overlooked,
            overlooked_places: self.names.names(&Vec::from_iter(sum.overlooked_places)),
            calls_over: sum.calls_over,
            at_limit: self.limit_reached,
            auto: "level = \"auto\"",
            doctor: None,
        };
        let notes = left_out(&covered);
        for promise in &mut guarantees {
            promise.leaves_out = ledger(&covered, &self.unseen, sum.partly_controlled);
        }
        let guarantee = headline(&guarantees);
        let seconds = (self.spent + running_for).as_secs_f64().max(1e-9);
        StrictNumbers {
            strategy: parameters.strategy,
            seed: Seed::new(self.seed).to_string(),
            runs: sum.runs,
            threads: sum.threads,
            steps,
            depth: guarantee.as_ref().map_or(0, |promise| promise.depth),
            guarantee,
            guarantees,
            schedules_per_second: sum.runs as f64 / seconds,
            steps_per_second: sum.steps as f64 / seconds,
            exhausted: self.exhausted && !sum.quiet,
            quiet: sum.quiet,
            partly_controlled: sum.partly_controlled,
            left_behind: self.left_behind,
            limit_reached: self.limit_reached,
            unconfirmed: self.unconfirmed,
            level: self.strict.conditions.level.name().to_owned(),
            sites: sum.places,
            looked_at: sum.looked_at,
            accesses: sum.accesses,
            limited_sites: sum.limited,
            patched: sum.patched,
            refused: sum.refused,
            orders: (sum.orders.runs > 0).then_some(sum.orders),
            notes,
        }
    }
}

/// A schedule that failed, with everything that is needed to run it again.
#[derive(Clone, Debug)]
pub struct FailedSchedule {
    /// Which schedule of which test.
    pub plan: SchedulePlan,
    /// How schedules are made.
    pub strict: Strict,
    /// The seed of the test's schedules.
    pub seed: u64,
    /// What the strategy was given.
    pub parameters: RunParameters,
    /// What broke.
    pub kind: Kind,
    /// Who ran when, until it broke.
    pub schedule: Schedule,
    /// Where its process began, if that is known.
    pub past: Option<Past>,
    /// Its plain accesses that are steps, from the memory level on.
    pub steps: Option<PlainSteps>,
    /// The schedule was too long to be recorded.
    pub cut: bool,
    /// Something outside the library's control took part.
    pub partly_controlled: bool,
    /// How long the schedule may take.
    pub patience: Duration,
    /// How long explaining may take by the clock, whatever the machine is busy with.
    pub explaining: Duration,
}

/// Places in libraries of the system whose accesses conflict; a library without is not there.
pub type LibraryConflicts = BTreeMap<String, BTreeSet<u64>>;

/// A test whose libraries are looked into, because something is promised of it.
#[derive(Clone, Debug)]
pub struct LibraryLook {
    /// One schedule of it.
    pub plan: SchedulePlan,
    /// How schedules are made.
    pub strict: Strict,
    /// The seed of the test's schedules.
    pub seed: u64,
    /// Where plain accesses are steps.
    pub sites: Vec<Site>,
    /// The libraries, by name.
    pub libraries: Vec<String>,
    /// How long a schedule may take.
    pub patience: Duration,
}

/// Whether a list has more steps than its beginning, in runs that something is promised by.
fn adds_steps(list: &[Site], beginning: &[Site]) -> bool {
    list.get(beginning.len()..).unwrap_or_default().iter().any(|site| !site.is_handed())
}

/// Runs failing schedules again, each in a fresh process.
pub trait Examiner {
    /// Runs the schedule again and holds it where it fails, or says why that is impossible.
    fn examine(&mut self, failed: &FailedSchedule) -> Result<Box<dyn Examination>, String>;
    /// Looks for accesses inside libraries that conflict in an order that nothing settles. None when that could not be decided.
    fn conflicts(&mut self, look: &LibraryLook) -> Option<LibraryConflicts>;
}

/// What a fresh process showed that followed a failing schedule. It is held until this is dropped.
pub trait Examination {
    /// What it showed instead of the failure; none when it failed in the same way.
    fn instead(&self) -> Option<&str>;
    /// Every thread's stack, the one to blame first.
    fn stacks(&self) -> &[ThreadStack];
    /// The stacks as text for people.
    fn text(&self) -> &str;
    /// Who waits for what, a line each, of a run that came to a standstill. Objects are called as in its timeline.
    fn waits(&self) -> &[String];
    /// What could not be collected.
    fn gaps(&self) -> &[String];
    /// Which orders of events it needs, if that was sought.
    fn why(&self) -> &Why;
    /// How long minimising it and seeking that took.
    fn explained(&self) -> Duration;
    /// Writes what is wanted of dumps.
    fn dump(&self, path: &Path, dumper: &Dumper) -> Result<Dumped, String>;
    /// Writes into the failure's folder what is needed to run the schedule again.
    fn keep(&self, folder: &Path) -> Result<(), String>;
}

/// How often failures that look alike were examined, and what they turned out to be.
#[derive(Debug, Default)]
pub(crate) struct Examined(pub(super) BTreeMap<String, (u64, Option<Signature>)>);

#[cfg(test)]
mod tests {
    use waylay_control_protocol::RegionMap;
    use waylay_schedule::Handover;

    use super::*;

    /// A test writes into what its process leaves for the next one.
    #[test]
    fn what_is_handed_over_ends_no_test_that_searches_nothing_and_names_a_strategy() {
        let left = |strategy: Spec, next: Option<&str>| {
            let mut test = StrictTest::seeded(Strict::of(strategy), Seed::new(1));
            let region = test.prepare().unwrap();
            let library = RegionMap::open(region.descriptor()).unwrap();
            let handover = Handover { run: RunParameters::of("random"), next: next.map(RunParameters::of) };
            library.hand_over(&serde_json::to_string(&handover).unwrap());
            test.account(&region, false);
            (test.exhausted, test.next.map(|next| next.strategy))
        };
        let search = || "dfs".parse::<Spec>().unwrap();
        assert_eq!(left(search(), None), (true, None));
        assert_eq!(left(Spec::Random, None), (false, None));
        assert_eq!(left(Spec::Random, Some("random")), (false, Some("random".to_owned())));
        assert_eq!(left(Spec::Random, Some("mine")), (false, None));
    }
}
