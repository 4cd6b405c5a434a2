//! A search that is aimed at pairs of places: threads are held back at one until another thread has come by the other, in
//! both orders, and it is seen whether that breaks.
//!
//! Somebody has a race report, or a suspicion, and wants the schedule that breaks. What is at these places is learned from
//! runs of the program. Then each pair of events is tried as it is, the other way round, and with one of them between the
//! other and what its thread does next to the same thing (an atomicity violation); what else happens is left to chance. The
//! idea of forcing an order by holding one end back is that of "Maple: A Coverage-Driven Testing Tool for Multithreaded
//! Programs" (OOPSLA 2012) and of "Race Directed Random Testing of Concurrent Programs" (PLDI 2008).
//!
//! - `spot`: places
//! - `accusation`: reports of other tools, and of ours, as places
//! - `locate`: which events are there
//! - `summary`: what people and machines are told

pub mod accusation;
mod locate;
pub mod spot;
mod summary;

use std::time::{Duration, Instant};

use waylay_driver::failure::Kind;
use waylay_driver::store::{Campaign, CampaignState, FailureStore, ScenarioRecord, TestRecord, Unit, owed};
use waylay_evidence::Symbolizer;
use waylay_schedule::ordered::Order;
use waylay_schedule::{Run, RunParameters, Seed};

use waylay_evidence::Unseen;

use crate::cause::places::Seen;
use crate::cause::trace::{Pair, Trace};
use crate::explorer::{ExploreError, Plan, Progress, State, open_campaign};
use crate::findings::{Failing, Findings, Taken};
use crate::follow::survey::{base, conditions_anew, learn, run, survey};
use crate::learner::Planned;
use crate::observed::Observed;
use crate::oracle::{Failure, Verdict, judge};
use crate::recording::{self, StrictRecord};
use crate::server::Server;
use crate::summary::Found;
use locate::{Aim, Located, locate};
use spot::Target;
pub use summary::{Directed, Tracked, Tried};

/// What decided in runs that were aimed, in the words of a strategy.
pub const AIMED: &str = "aimed";
/// Runs that only look what threads do.
const SURVEYED: u64 = 6;
/// Rounds over all pairs, each with another base.
const MOST_ROUNDS: u64 = 20;

/// Searches for failures at pairs of places.
pub fn directed(
    plan: &Plan,
    targets: &[Target],
    progress: &mut dyn Progress,
) -> Result<Directed, ExploreError> {
    let (campaign, store) = open_campaign(plan, &plan.program.title(), Unit::Schedules)?;
    let mut search = Search {
        plan,
        begun: Instant::now(),
        directed: Directed {
            program: plan.program.subject(),
            seed: waylay_dist::Seed::new(plan.seed).to_string(),
            runs: 0,
            unaimed: Tried::default(),
            failures: 0,
            targets: Vec::new(),
            missing: Vec::new(),
            failure_dir: None,
            replay: None,
            found: Vec::new(),
            interrupted: false,
            seconds: 0.0,
            folder: campaign.folder().to_owned(),
        },
        findings: Findings::new(plan, Unseen::of(&plan.program.file).libraries),
        store,
        threads: 0,
    };
    let ended = search.go(targets, progress);
    search.close(campaign, ended, progress)
}

struct Search<'a> {
    plan: &'a Plan,
    begun: Instant,
    directed: Directed,
    findings: Findings<'a>,
    store: FailureStore,
    threads: u32,
}

impl Search<'_> {
    fn go(&mut self, targets: &[Target], progress: &mut dyn Progress) -> Result<(), ExploreError> {
        let plan = self.plan;
        let mut record = self.record();
        let mut server = Server::start(&plan.program, &plan.library, &record.conditions)?;
        let mut names = Symbolizer::default();
        let begun = self.begun;
        let in_time = |elapsed: Duration| plan.duration.is_none_or(|limit| elapsed < limit);
        let mut stopped = false;
        let mut go_on = |runs: u64, failures: u64| {
            let elapsed = begun.elapsed();
            stopped |= !progress.tick(&State { elapsed, runs, judged: runs, failures, steps: 0 });
            !stopped && in_time(elapsed)
        };
        let most = plan.runs.unwrap_or(u64::MAX);
        learn(&mut record, &mut server, &mut || go_on(0, 0))?;
        let mut found = Vec::new();
        let mut seen = Vec::new();
        for number in 0..SURVEYED {
            let Directed { runs, failures, .. } = self.directed;
            if runs == most || !go_on(runs, failures) {
                break;
            }
            let (trace, new) = self.look_around(&record, &mut server, number)?;
            seen.extend((!trace.events.is_empty()).then(|| Seen {
                trace,
                orders: Vec::new(),
                base: base(number),
            }));
            found.extend(new);
        }
        let mut located = locate(&record, targets, &seen, &plan.library, &mut names);
        if !located.missing.is_empty() && record.conditions.steps.sites.is_some() {
            // What is always under one lock is no step, although it is there: now every access is one.
            let learned = record.conditions.steps.sites.take();
            let seen = survey(&record, &mut server, &[], &mut || go_on(0, 0))?;
            let again = locate(&record, targets, &seen, &plan.library, &mut names);
            if again.missing.len() < located.missing.len() {
                located = again;
            } else {
                record.conditions.steps.sites = learned;
            }
        }
        let Located { aims, missing } = located;
        self.directed.missing = missing.into_iter().collect();
        self.directed.targets = targets
            .iter()
            .enumerate()
            .map(|(number, target)| Tracked {
                target: target.clone(),
                pairs: aims.iter().filter(|aim| aim.target == number).count() as u64,
                one_first: Tried::default(),
                other_first: Tried::default(),
                neither: Tried::default(),
            })
            .collect();
        'rounds: for round in 0..MOST_ROUNDS {
            for aim in &aims {
                for orders in variants(aim) {
                    let Directed { runs, failures, .. } = self.directed;
                    if runs == most || !go_on(runs, failures) {
                        break 'rounds;
                    }
                    if let Some(new) = self.try_once(&record, &mut server, aim, &orders, round)? {
                        found.push(new);
                        if plan.stop_on_first {
                            break 'rounds;
                        }
                    }
                }
            }
            // The first round has tried everything once; more of what breaks already tells nothing.
            if !found.is_empty() {
                break;
            }
        }
        self.directed.interrupted = stopped;
        found.iter().for_each(|found| progress.found(found));
        Ok(())
    }

    /// One run that is not aimed, to see what happens; it may fail all the same.
    fn look_around(
        &mut self,
        record: &StrictRecord,
        server: &mut Server,
        number: u64,
    ) -> Result<(Trace, Option<Found>), ExploreError> {
        let (observed, trace) = run(record, server, &[], &base(number))?;
        self.directed.runs += 1;
        self.directed.unaimed.runs += 1;
        let new = match judge(&observed, &record.expected) {
            Verdict::Failed(failure) => {
                self.directed.unaimed.failures += 1;
                self.take(record, server, &observed, &failure)?
            }
            _ => None,
        };
        Ok((trace, new))
    }

    /// One run in which orders are kept; gives a failure that is the first with its signature.
    fn try_once(
        &mut self,
        record: &StrictRecord,
        server: &mut Server,
        aim: &Aim,
        orders: &[Order],
        round: u64,
    ) -> Result<Option<Found>, ExploreError> {
        let (observed, trace) = run(record, server, orders, &base(round))?;
        self.directed.runs += 1;
        self.threads = self.threads.max(observed.threads);
        let failed = match judge(&observed, &record.expected) {
            Verdict::Failed(failure) => Some(failure),
            _ => None,
        };
        let tried = tried(&mut self.directed.targets[aim.target], &aim.pair, &trace);
        tried.runs += 1;
        tried.failures += u64::from(failed.is_some());
        match failed {
            Some(failure) => self.take(record, server, &observed, &failure),
            None => Ok(None),
        }
    }

    /// Keeps a failure of the last run; gives it if it is the first with its signature.
    fn take(
        &mut self,
        record: &StrictRecord,
        server: &Server,
        observed: &Observed,
        failure: &Failure,
    ) -> Result<Option<Found>, ExploreError> {
        let schedule = server.schedule().unwrap_or_default();
        let planned = Planned {
            run: Run { seed: Seed(self.plan.seed), index: record.index },
            parameters: RunParameters::of(AIMED),
            listen: true,
            handed: record.conditions.steps.handed,
        };
        let failing = Failing { planned: &planned, observed, failure, schedule: &schedule };
        let taken = self.findings.take(&failing, &record.conditions, &mut self.store)?;
        self.directed.failures += u64::from(!matches!(taken, Taken::Atomic(_)));
        let new = self.findings.found.last_mut().filter(|_| matches!(taken, Taken::New)).map(|new| {
            // All runs have the random bytes of the first, so that events are found again; they are counted here.
            new.first_run = self.directed.runs;
            &*new
        });
        if let (Some(new), None) = (new, &self.directed.failure_dir) {
            (self.directed.failure_dir, self.directed.replay) = (new.failure_dir.clone(), new.replay.clone());
        }
        Ok(new.cloned())
    }

    /// What runs are made with, in the form of a record of one.
    fn record(&self) -> StrictRecord {
        let plan = self.plan;
        StrictRecord {
            format: recording::FORMAT,
            program: plan.program.clone(),
            conditions: conditions_anew(&plan.conditions),
            expected: plan.expected.clone(),
            seed: plan.seed,
            run: 1,
            index: 0,
            parameters: RunParameters::of(AIMED),
            kind: Kind::Crash,
            key: String::new(),
            steps: 0,
            switches: 0,
            threads: 0,
            confirmed: false,
            partly_controlled: false,
        }
    }

    fn close(
        mut self,
        mut campaign: Campaign,
        ended: Result<(), ExploreError>,
        progress: &mut dyn Progress,
    ) -> Result<Directed, ExploreError> {
        let seconds = self.begun.elapsed().as_secs_f64();
        let Directed { runs, failures, .. } = self.directed;
        self.store.flush();
        campaign.record.signatures = self.findings.found.len() as u64;
        campaign.record.failures = failures;
        campaign.record.scenarios = vec![ScenarioRecord {
            name: self.plan.program.scenario(),
            mode: "strict".to_owned(),
            seconds,
            randomizer: None,
            tests: vec![TestRecord {
                name: self.plan.program.title(),
                plugin: self.plan.program.file.clone(),
                workers: self.threads,
                iterations: runs.saturating_sub(failures),
                failures,
                average_ns: seconds * 1e9 / runs.max(1) as f64,
                shortest_ns: 0.0,
                longest_ns: 0.0,
                retired: None,
                strict: None,
                bound: None,
                no_bound: None,
                pot: None,
            }],
        }];
        campaign.save();
        let folder = campaign.folder().to_owned();
        let stopped = ended.is_err() || self.directed.interrupted;
        let state = if stopped { CampaignState::Stopped } else { CampaignState::Finished };
        let record = campaign.close(state);
        progress.campaign(&record, &folder, &self.store.entries());
        owed::take_news().iter().for_each(|text| progress.note(text));
        ended?;
        self.directed.found = std::mem::take(&mut self.findings.found);
        self.directed.seconds = seconds;
        Ok(self.directed)
    }
}

/// Where a run of a pair counts.
fn tried<'a>(tracked: &'a mut Tracked, pair: &Pair, trace: &Trace) -> &'a mut Tried {
    let both = trace.place(&pair.shown.first).is_some() && trace.place(&pair.shown.then).is_some();
    match (both, trace.keeps(pair)) {
        (true, true) => &mut tracked.one_first,
        (true, false) => &mut tracked.other_first,
        (false, _) => &mut tracked.neither,
    }
}

/// The orders that are tried with a pair: both, and each event between the other and what its thread does next.
fn variants(aim: &Aim) -> Vec<Vec<Order>> {
    let [one, other] = &aim.steps;
    let (pair, reversed) = (aim.pair, aim.pair.reversed());
    let between = |pair: Pair, middle, after: Option<_>| {
        let next = Pair::of(middle, &after?)?;
        Some(vec![pair.held, next.held])
    };
    let mut all = vec![vec![pair.held], vec![reversed.held]];
    all.extend(between(pair, other, aim.after[0]));
    all.extend(between(reversed, one, aim.after[1]));
    all
}
