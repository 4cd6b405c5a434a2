//! All cases of one or several suites, explored as one campaign, the time shared among them.
//!
//! Every case is an exploration of its own, made in turns. Whose turn it is the melting pot's ledger says: each case gets the
//! same time, whatever one of its runs takes, so that a slow case does not starve the others. A case that failed is minimised
//! and retired; so is one that has made its runs, or turns out to have no threads.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use waylay_driver::failure::FailureEntry;
use waylay_driver::store::{
    Campaign, CampaignRecord, CampaignState, FailureStore, Outcomes, ScenarioRecord, ShardRecord, Unit, owed,
};
use waylay_evidence::Unseen;
use waylay_melting_pot::fairness::{Account, Ledger, Policy, Rule};

use super::Case;
use super::summary::CaseResult;
use crate::batch::Shared;
use crate::explorer::{Exploration, ExploreError, Plan, Progress, State, open_campaign};
use crate::libraries::LOOKS;
use crate::restart::Off;
use crate::share::Share;
use crate::summary::Found;
use crate::worker::Worker;

/// Turns are at least so long, so that starting a case's processes is little beside them, and not much longer.
const POLICY: Policy = Policy { rule: Rule::Fair, shortest_turn: 0.5, longest_turn: 2.0 };
/// Cases whose processes are kept between their turns; those of the others are started again.
const KEPT: usize = 16;

/// How far all of it is.
#[derive(Clone, Copy, Debug)]
pub struct Standing<'a> {
    /// Since the beginning.
    pub elapsed: Duration,
    /// Runs so far, of all cases.
    pub runs: u64,
    /// Cases that failed.
    pub failed: usize,
    /// Cases that are explored to their end.
    pub done: usize,
    /// Cases.
    pub cases: usize,
    /// The one whose turn it is.
    pub case: &'a str,
}

/// Whom to tell how it goes.
pub trait Watcher {
    /// Called every now and then; `false` ends it all.
    fn tick(&mut self, standing: &Standing<'_>) -> bool;
    /// A failure of a case.
    fn found(&mut self, case: &str, found: &Found);
    /// As for an exploration of one program.
    fn campaign(&mut self, record: &CampaignRecord, folder: &Path, failures: &[&FailureEntry]);
    /// Something worth a line.
    fn note(&mut self, text: &str) {
        let _ = text;
    }
}

/// A case on its way.
struct Entry<'a> {
    plan: &'a Plan,
    exploration: Option<Exploration<'a>>,
    workers: Vec<Worker<'a>>,
    off: Option<Off>,
    seconds: f64,
    runs: u64,
    over: Option<Over>,
}

/// Why a case has no more turns.
enum Over {
    /// All its runs were made, or it failed.
    Explored,
    /// It has no threads of its own.
    NoThreads,
    /// It could not be explored, for this reason.
    Unable(String),
}

/// What came of all cases, in their order, and where it is kept.
#[derive(Debug)]
pub struct Explored {
    /// By case.
    pub cases: Vec<CaseResult>,
    /// The user stopped it.
    pub interrupted: bool,
    /// The campaign's folder.
    pub folder: std::path::PathBuf,
}

/// Explores cases under the conditions of a plan, whose program is left aside: `runs` are each case's, the time is for all.
pub fn explore(base: &Plan, cases: &[Case], watcher: &mut dyn Watcher) -> Result<Explored, ExploreError> {
    let plans: Vec<Plan> = cases.iter().map(|case| plan_of(base, case)).collect();
    let names: Vec<String> = cases.iter().map(|case| case.program.subject()).collect();
    let (mut campaign, mut store) = open_campaign(base, &names.join("\n"), Unit::Cases)?;
    let folder = campaign.folder().to_owned();
    // All cases of a binary are one file.
    let mut unseen: BTreeMap<&Path, Unseen> = BTreeMap::new();
    for plan in &plans {
        unseen.entry(&plan.program.file).or_insert_with(|| Unseen::of(&plan.program.file));
    }
    let entries = plans
        .iter()
        .map(|plan| Entry {
            plan,
            exploration: Some(Exploration::new(
                plan,
                folder.clone(),
                unseen[plan.program.file.as_path()].clone(),
            )),
            workers: Vec::new(),
            off: None,
            seconds: 0.0,
            runs: 0,
            over: None,
        })
        .collect();
    let share = base.share.clone();
    let mut together =
        Together { share, entries, recent: Vec::new(), begun: Instant::now(), interrupted: false };
    let result = together.go(base, (&mut campaign, &mut store), watcher);
    if result.is_ok() && !together.interrupted {
        together.entries.iter_mut().for_each(Entry::look_into_libraries);
    }
    together.save(&mut campaign, &mut store, watcher);
    let interrupted = together.interrupted;
    let stopped = interrupted || result.is_err();
    let state = if stopped { CampaignState::Stopped } else { CampaignState::Finished };
    if let Some(shard) = &mut campaign.record.shard {
        shard.done = !stopped;
    }
    watcher.campaign(&campaign.close(state), &folder, &[]);
    result?;
    let cases = together.entries.into_iter().map(Entry::result).collect();
    Ok(Explored { cases, interrupted, folder })
}

fn plan_of(base: &Plan, case: &Case) -> Plan {
    let mut plan = base.clone();
    plan.program = case.program.clone();
    plan.program.environment.extend(base.program.environment.iter().cloned());
    plan.own_threads = case.own_threads;
    plan.duration = None;
    plan.share = None;
    plan.stop_on_first = true;
    plan.expected.case = true;
    plan.expected.passing.clone_from(&case.passing);
    plan
}

struct Together<'a> {
    /// Which part of the cases these are, if they are not all.
    share: Option<Share>,
    entries: Vec<Entry<'a>>,
    /// Cases whose processes are there, the one whose turn was last behind.
    recent: Vec<usize>,
    begun: Instant,
    interrupted: bool,
}

impl Together<'_> {
    fn go(
        &mut self,
        base: &Plan,
        (campaign, store): (&mut Campaign, &mut FailureStore),
        watcher: &mut dyn Watcher,
    ) -> Result<(), ExploreError> {
        let deadline = base.duration.map(|duration| self.begun + duration);
        let mut ledger = Ledger::new(POLICY);
        ledger.accounts = self.entries.iter().map(|_| Account::default()).collect();
        let (seed, mut number) = (waylay_dist::Seed::new(base.seed), 0);
        let mut random = || {
            number += 1;
            (seed.derive("suite", number).get() >> 11) as f64 / (1_u64 << 53) as f64
        };
        let mut saved = Instant::now();
        while !self.interrupted && deadline.is_none_or(|deadline| Instant::now() < deadline) {
            let Some(draw) = ledger.draw(1, &mut random).first().copied() else { break };
            let turn = Duration::from_secs_f64(ledger.turn_length());
            let (runs, seconds) = self.turn(draw.test, (draw.times, turn), deadline, store, watcher)?;
            ledger.settle(draw.test, runs, seconds);
            ledger.accounts[draw.test].retired = self.entries[draw.test].over.is_some();
            if saved.elapsed() > Duration::from_secs(1) {
                self.save(campaign, store, watcher);
                saved = Instant::now();
            }
        }
        Ok(())
    }

    /// One turn of a case: runs that it made, and seconds that they took.
    fn turn(
        &mut self,
        number: usize,
        (most, length): (u64, Duration),
        deadline: Option<Instant>,
        store: &mut FailureStore,
        watcher: &mut dyn Watcher,
    ) -> Result<(u64, f64), ExploreError> {
        if let Err(error) = self.start(number) {
            self.entries[number].over = Some(Over::Unable(error.to_string()));
            return Ok((0, 0.0));
        }
        let standing = Standing {
            elapsed: self.begun.elapsed(),
            runs: self.entries.iter().map(|entry| entry.runs).sum(),
            failed: self.entries.iter().filter(|entry| entry.failed()).count(),
            done: self.entries.iter().filter(|entry| entry.over.is_some()).count(),
            cases: self.entries.len(),
            case: &self.entries[number].plan.program.subject(),
        };
        let begun = Instant::now();
        let until = deadline.map_or(begun + length, |deadline| deadline.min(begun + length));
        let shared = Shared::new(Some(until));
        let mut narrator = Narrator { watcher, standing, wanted: true };
        let entry = &mut self.entries[number];
        let Some(exploration) = &mut entry.exploration else { return Ok((0, 0.0)) };
        let before = exploration.summary.runs;
        let made = loop {
            match exploration.batch(&mut entry.workers, &shared, store, &mut narrator) {
                Ok(None) if shared.late() || exploration.summary.runs - before >= most => break Ok(None),
                Ok(None) => {}
                other => break other,
            }
        };
        let runs = exploration.summary.runs - before;
        let seconds = begun.elapsed().as_secs_f64();
        entry.runs += runs;
        entry.seconds += seconds;
        self.interrupted |= !narrator.wanted;
        match made {
            Ok(None | Some(CampaignState::Stopped)) => {}
            Ok(Some(_)) => entry.over = Some(Over::Explored),
            Err(ExploreError::NoThreads { .. }) => entry.over = Some(Over::NoThreads),
            Err(error @ (ExploreError::Run(_) | ExploreError::ThreadsBeforeMain(_))) => {
                entry.over = Some(Over::Unable(error.to_string()));
            }
            Err(error) => return Err(error),
        }
        if entry.over.is_some() {
            entry.end_workers();
            self.recent.retain(|&other| other != number);
        }
        Ok((runs, seconds))
    }

    /// Sees to it that the case's processes are there.
    fn start(&mut self, number: usize) -> Result<(), crate::server::RunError> {
        self.recent.retain(|&other| other != number);
        self.recent.push(number);
        if self.recent.len() > KEPT {
            let oldest = self.recent.remove(0);
            self.entries[oldest].end_workers();
        }
        let entry = &mut self.entries[number];
        while entry.workers.len() < entry.plan.jobs.max(1) as usize {
            entry.workers.push(Worker::start_again(entry.plan, entry.off.clone())?);
        }
        Ok(())
    }

    /// Which part of the cases was explored.
    fn part(&self, share: &Share, store: &FailureStore) -> ShardRecord {
        let mut outcomes = Outcomes::default();
        for entry in &self.entries {
            outcomes.add(entry.runs, u64::from(entry.failed()), &entry.plan.program.subject());
        }
        let counts = store.entries().into_iter().map(|entry| (entry.signature.id.clone(), entry.count));
        ShardRecord {
            to: self.entries.iter().map(|entry| entry.runs).sum(),
            outcomes: outcomes.to_string(),
            failures: counts.collect(),
            ..share.record(Unit::Cases)
        }
    }

    fn save(&self, campaign: &mut Campaign, store: &mut FailureStore, watcher: &mut dyn Watcher) {
        owed::settle();
        store.flush();
        let record = &mut campaign.record;
        let explorations = || self.entries.iter().filter_map(|entry| entry.exploration.as_ref());
        record.signatures = explorations().map(|one| one.findings.found.len() as u64).sum();
        record.failures = explorations().map(|one| one.summary.failures).sum();
        record.shard = self.share.as_ref().map(|share| self.part(share, store));
        record.scenarios.clear();
        for entry in self.entries.iter().filter(|entry| entry.runs > 0 && !entry.has_no_threads()) {
            let Some(exploration) = &entry.exploration else { continue };
            let mut test = exploration.record(entry.seconds);
            test.retired = entry.failed().then(|| "it failed".to_owned());
            let name = entry.plan.program.scenario();
            match record.scenarios.iter_mut().find(|scenario| scenario.name == name) {
                Some(scenario) => {
                    scenario.seconds += entry.seconds;
                    scenario.tests.push(test);
                }
                None => record.scenarios.push(ScenarioRecord {
                    name,
                    mode: "strict".to_owned(),
                    seconds: entry.seconds,
                    randomizer: None,
                    tests: vec![test],
                }),
            }
        }
        campaign.save();
        watcher.campaign(&campaign.record, campaign.folder(), &store.entries());
        owed::take_news().iter().for_each(|text| watcher.note(text));
    }
}

impl Entry<'_> {
    fn failed(&self) -> bool {
        self.exploration.as_ref().is_some_and(|exploration| exploration.summary.failures > 0)
    }

    fn has_no_threads(&self) -> bool {
        // Its time may have been over before it had as many runs as are needed to retire it.
        let alone = || self.exploration.as_ref().is_some_and(|exploration| exploration.had_no_threads());
        matches!(self.over, Some(Over::NoThreads)) || alone()
    }

    /// Finds out which libraries of the system what is promised of a case has to leave out. That takes some runs that cost ten
    /// times as much as others, so a case that had few does without.
    fn look_into_libraries(&mut self) {
        const SHARE: u64 = 8;
        if self.runs >= SHARE * LOOKS && !self.failed() && !self.has_no_threads() {
            self.end_workers();
            self.exploration.iter_mut().for_each(Exploration::look_into_libraries);
        }
    }

    fn end_workers(&mut self) {
        if let Some(exploration) = &mut self.exploration {
            exploration.summary.take_workers(self.plan.restart, &self.workers);
        }
        self.off =
            self.off.take().or_else(|| self.workers.iter().find_map(|worker| worker.known.off.clone()));
        self.workers.clear();
    }

    fn result(mut self) -> CaseResult {
        self.end_workers();
        let (suite, case) = (self.plan.program.scenario(), self.plan.program.title());
        let no_threads = self.has_no_threads();
        let unable = match self.over {
            Some(Over::Unable(why)) => Some(why),
            _ => None,
        };
        let summary =
            self.exploration.map(|exploration| exploration.summed_up(self.seconds)).unwrap_or_default();
        CaseResult { suite, case, no_threads, unable, summary }
    }
}

/// Tells the watcher of a case's progress as one of all.
struct Narrator<'a, 'b> {
    watcher: &'a mut dyn Watcher,
    standing: Standing<'b>,
    wanted: bool,
}

impl Progress for Narrator<'_, '_> {
    fn tick(&mut self, state: &State) -> bool {
        let elapsed = self.standing.elapsed;
        self.wanted &=
            self.watcher.tick(&Standing { elapsed, runs: self.standing.runs + state.runs, ..self.standing });
        self.wanted
    }

    fn found(&mut self, found: &Found) {
        self.watcher.found(self.standing.case, found);
    }
}
