//! What failing runs come to: each is confirmed, signed and kept, or only counted when many like it were before.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use waylay_control_protocol::{Memory, Statement};
use waylay_driver::dumps::Dumper;
use waylay_driver::failure::{Finding, Kind, Occurrence, Variant};
use waylay_driver::store::FailureStore;
use waylay_evidence::Symbolizer;
use waylay_report::cause::Why;
use waylay_report::shell;
use waylay_schedule::Schedule;

use crate::confirm::{Evidence, confirm};
use crate::delayed::DelayedText;
use crate::deliberate::Weighed;
use crate::explain::{Explanation, explain};
use crate::explorer::{ExploreError, Plan};
use crate::learner::Planned;
use crate::minimize::{self, Minimized};
use crate::observed::{Observed, to_stretches};
use crate::oracle::{Failure, NO_END};
use crate::places::places;
use crate::recording::{self, Conditions, RecordError, StrictRecord};
use crate::server::{Guide, RunError};
use crate::streams::KEPT;
use crate::summary::Found;
use crate::timings::{self, Stage};

/// Failing runs with one key that are confirmed and looked at; there may be several signatures behind one key.
const EXAMINED_PER_KEY: u64 = 5;

/// One run that failed.
#[derive(Clone, Copy)]
pub(crate) struct Failing<'a> {
    pub(crate) planned: &'a Planned,
    pub(crate) observed: &'a Observed,
    pub(crate) failure: &'a Failure,
    pub(crate) schedule: &'a Schedule,
}

/// The failures of an exploration.
pub(crate) struct Findings<'a> {
    plan: &'a Plan,
    /// Failing runs by key: how many there were, and the signature that the last examined one had.
    keys: BTreeMap<String, (u64, Option<String>)>,
    names: Symbolizer,
    /// Every signature, in the order in which they were found.
    pub(crate) found: Vec<Found>,
    /// Failing runs that were only counted.
    pub(crate) not_examined: u64,
    /// Keys of what looked like a race and is none, with the sites whose accesses are atomic.
    innocent: BTreeMap<String, Vec<u64>>,
    /// Keys of races that other shards count, and that were weighed here.
    weighed: BTreeSet<String>,
    /// Libraries of the system that the program names.
    libraries: Vec<String>,
    /// Failures in which stores waited, and that a fresh process did not show.
    pub(crate) unconfirmed_delays: u64,
    /// Races that a fresh process did not show, and those that may be none.
    pub(crate) unconfirmed_races: u64,
    /// What the first of the former showed instead.
    pub(crate) shown_instead: Option<String>,
    pub(crate) doubtful_races: u64,
    /// Signatures whose cause was sought in vain.
    unexplained: BTreeMap<String, Tried>,
}

/// How the cause of a failure was sought.
struct Tried {
    /// In a run of which the accesses at so many places are steps.
    sites: usize,
    times: u32,
}

impl Tried {
    /// Whether a run of which more accesses are steps may tell more, and was not tried too often.
    fn is_outdated(&self, sites: usize) -> bool {
        const MOST_TIMES: u32 = 3;
        sites > self.sites && self.times < MOST_TIMES
    }
}

/// At how many places of the code accesses are steps.
fn places_of(conditions: &Conditions) -> usize {
    conditions.steps.sites.as_ref().map_or(0, Vec::len)
}

/// What a failing run came to.
pub(crate) enum Taken {
    /// The first with its signature, which is the last of [`Findings::found`].
    New,
    /// One more of what is known.
    Again,
    /// No failure: accesses at these sites are atomic.
    Atomic(Vec<u64>),
    /// None that can be believed: stores waited, and a fresh process did not fail in the same way.
    Doubtful,
}

impl<'a> Findings<'a> {
    pub(crate) fn new(plan: &'a Plan, libraries: Vec<String>) -> Findings<'a> {
        Findings {
            plan,
            keys: BTreeMap::new(),
            names: Symbolizer::default(),
            found: Vec::new(),
            not_examined: 0,
            innocent: BTreeMap::new(),
            weighed: BTreeSet::new(),
            unconfirmed_races: 0,
            libraries,
            unconfirmed_delays: 0,
            shown_instead: None,
            doubtful_races: 0,
            unexplained: BTreeMap::new(),
        }
    }

    /// Takes in a failing run, which was made under `conditions`, and keeps it in the store.
    pub(crate) fn take(
        &mut self,
        failing: &Failing<'_>,
        conditions: &Conditions,
        store: &mut FailureStore,
    ) -> Result<Taken, ExploreError> {
        let Failing { planned, failure, schedule, .. } = *failing;
        if let Some(sites) = self.innocent.get(&failure.key) {
            return Ok(Taken::Atomic(sites.clone()));
        }
        let (seen, signature) = self.keys.entry(failure.key.clone()).or_default();
        *seen += 1;
        // The key of a race names both places: there is no more to tell apart.
        let most = if failure.kind == Kind::Race { 1 } else { EXAMINED_PER_KEY };
        let sites = places_of(conditions);
        let unexplained = signature.as_ref().and_then(|signature| self.unexplained.get(signature));
        let worth_a_look = unexplained.is_some_and(|tried| tried.is_outdated(sites));
        let delayed = conditions.run.memory == Memory::Tso && !failing.observed.delayed.is_empty();
        if *seen > most && delayed && signature.is_none() {
            // None of those that were examined could be believed.
            self.unconfirmed_delays += 1;
            return Ok(Taken::Doubtful);
        }
        if *seen > most && !worth_a_look {
            self.not_examined += 1;
            if let Some(signature) = signature {
                let leader = store.leader(signature).to_owned();
                let found = self.found.iter_mut().find(|found| found.signature == leader);
                found.into_iter().for_each(|found| found.count_one(signature));
                store.count_again(signature, jiff::Timestamp::now());
            }
            return Ok(Taken::Again);
        }
        let mut evidence = match self.confirm(failing, conditions, schedule) {
            Err(RunError::Interrupted) => {
                self.not_examined += 1;
                return Ok(Taken::Again);
            }
            evidence => evidence?,
        };
        if delayed {
            match self.is_beyond_doubt(failing, conditions, &evidence) {
                Ok(true) => {}
                Ok(false) => {
                    self.unconfirmed_delays += 1;
                    return Ok(Taken::Doubtful);
                }
                Err(RunError::Interrupted) => {
                    self.not_examined += 1;
                    return Ok(Taken::Again);
                }
                Err(error) => return Err(error.into()),
            }
        }
        let key = failure.key.clone();
        self.keys.entry(key).or_default().1 = Some(evidence.signature.id.clone());
        let mut failure = failure.clone();
        if failure.kind == Kind::Race {
            if let Some(sites) = self.acquit(&evidence) {
                self.innocent.insert(failure.key.clone(), sites.clone());
                return Ok(Taken::Atomic(sites));
            }
            failure.what = evidence.race.as_ref().map_or(failure.what, |race| race.text.what());
        }
        let failing = &Failing { failure: &failure, ..*failing };
        let leader = store.leader(&evidence.signature.id).to_owned();
        if let Some(found) = self.found.iter_mut().find(|found| found.signature == leader) {
            found.count_one(&evidence.signature.id);
            let finding = self.finding(failing, &evidence, Why::default());
            let recorded = store.record(finding, |_| Err(String::new()));
            self.explain_again(failing, conditions, &mut evidence, recorded.folder, store)?;
            return Ok(Taken::Again);
        }
        let record = self.record(failing, conditions, evidence.confirmed);
        let (minimized, why) = match self.explain(failing, &record, &mut evidence) {
            Err(RunError::Interrupted) => (None, Why::default()),
            explained => explained?,
        };
        if why.no_cause.is_some() {
            let tried = Tried { sites: places_of(conditions), times: 1 };
            self.unexplained.insert(evidence.signature.id.clone(), tried);
        }
        let failure = &failure;
        let _stage = timings::within(Stage::Keep);
        let finding = self.finding(failing, &evidence, why.clone());
        let variant = Variant { signature: finding.signature.clone(), what: finding.what.clone(), count: 1 };
        let recorded = store.record(finding, |path| evidence.seen.dump(path, &Dumper::default()));
        if let Some(found) = self.found.iter_mut().find(|found| found.signature == recorded.signature) {
            found.count += 1;
            found.variants.push(variant);
            return Ok(Taken::Again);
        }
        let folder = recorded.folder.map(|folder| std::path::absolute(&folder).unwrap_or(folder));
        if let Some(folder) = &folder {
            self.write(folder, failing, record, &evidence, (minimized.as_ref(), &why))?;
        }
        self.found.push(Found {
            kind: failure.kind.word().to_owned(),
            signature: evidence.signature.id.clone(),
            text: evidence.signature.text.clone(),
            what: failure.what.clone(),
            // The framework ends the process; the stack there says nothing of the case.
            places: match &failure.place {
                Some(place) => vec![place.clone()],
                None => places(failure.kind, &evidence.seen.stacks),
            },
            count: 1,
            first_run: planned.run.index + 1,
            confirmed: evidence.confirmed,
            instead: evidence.shown_instead(),
            replay: folder.as_ref().map(|folder| format!("waylay replay {}", shell::word(folder))),
            failure_dir: folder,
            race: evidence.race.map(|race| race.text),
            forced: minimized.as_ref().map(|minimized| minimized.after),
            hint: hint(failing.observed, conditions),
            delayed: evidence.seen.delayed.clone(),
            why,
            variants: Vec::new(),
        });
        Ok(Taken::New)
    }

    /// What a failing run comes to that another shard counts: whether it is a failure has to be known here as well.
    pub(crate) fn look_at(
        &mut self,
        failing: &Failing<'_>,
        conditions: &Conditions,
    ) -> Result<Taken, ExploreError> {
        let key = &failing.failure.key;
        if let Some(sites) = self.innocent.get(key) {
            return Ok(Taken::Atomic(sites.clone()));
        }
        if failing.failure.kind != Kind::Race
            || self.keys.contains_key(key)
            || !self.weighed.insert(key.clone())
        {
            return Ok(Taken::Again);
        }
        let evidence = match self.confirm(failing, conditions, failing.schedule) {
            Err(RunError::Interrupted) => return Ok(Taken::Again),
            evidence => evidence?,
        };
        Ok(match self.acquit(&evidence) {
            Some(sites) => {
                self.innocent.insert(key.clone(), sites.clone());
                Taken::Atomic(sites)
            }
            None => Taken::Again,
        })
    }

    /// The sites of accesses that are atomic, if what looked like a race is none, or is not shown by a fresh process.
    fn acquit(&mut self, evidence: &Evidence) -> Option<Vec<u64>> {
        match evidence.race.as_ref().filter(|_| evidence.confirmed).map(|race| &race.weighed) {
            None => {
                self.unconfirmed_races += 1;
                self.shown_instead = self.shown_instead.take().or_else(|| evidence.shown_instead());
                Some(Vec::new())
            }
            Some(Weighed::Race) => None,
            Some(Weighed::Atomic(sites)) => Some(sites.clone()),
            Some(Weighed::Unknown(sites)) => {
                self.doubtful_races += 1;
                Some(sites.clone())
            }
        }
    }

    /// Runs a schedule of a failing run again in a fresh process.
    fn confirm(
        &mut self,
        failing: &Failing<'_>,
        conditions: &Conditions,
        schedule: &Schedule,
    ) -> Result<Evidence, RunError> {
        let _stage = timings::within(Stage::Confirm);
        let Plan { program, library, expected, seed, .. } = self.plan;
        let run = (*seed, failing.planned.run.index);
        let stretches = to_stretches(schedule);
        let guide = Guide::repeating(&stretches, &failing.planned.parameters);
        confirm(program, library, conditions, expected, run, guide, failing.failure, &mut self.names)
    }

    /// Whether a failure in which stores waited is there, too, when no store overtakes them: those that libraries of the
    /// system make are otherwise not seen, and go to memory at once.
    fn is_beyond_doubt(
        &mut self,
        failing: &Failing<'_>,
        conditions: &Conditions,
        evidence: &Evidence,
    ) -> Result<bool, RunError> {
        // What could not be patched may store, or be the fence.
        if failing.observed.patched.1 > 0 {
            return Ok(false);
        }
        if !evidence.confirmed || self.libraries.is_empty() {
            return Ok(evidence.confirmed);
        }
        let mut conditions = conditions.clone();
        conditions.run.memory_modules.extend_from_slice(&self.libraries);
        Ok(self.confirm(failing, &conditions, failing.schedule)?.confirmed)
    }

    /// Minimises a failure and looks for its cause, unless it was not confirmed or takes too long each time. What is shown
    /// from then on is the minimised schedule, if a fresh process shows the failure with it, too.
    fn explain(
        &mut self,
        failing: &Failing<'_>,
        record: &StrictRecord,
        evidence: &mut Evidence,
    ) -> Result<(Option<Minimized>, Why), RunError> {
        // There is no schedule to be believed.
        let corrupted = failing.failure.kind == Kind::Corrupted;
        let Some(budget) =
            self.plan.minimize.filter(|_| evidence.confirmed && !failing.observed.cut && !corrupted)
        else {
            return Ok((None, Why::default()));
        };
        if failing.failure.cause == NO_END {
            let why = "each run of what does not end takes as long as the limit".to_owned();
            return Ok((None, Why { cause: None, no_cause: Some(why) }));
        }
        let Explanation { minimized, why } = explain(
            record,
            failing.schedule,
            &self.plan.library,
            (budget, std::time::Duration::MAX),
            &mut self.names,
        )?;
        let Some(minimized) = minimized else { return Ok((None, why)) };
        let shown = self.confirm(failing, &record.conditions, &minimized.schedule)?;
        if !shown.confirmed {
            return Ok((None, why));
        }
        let signature = evidence.signature.clone();
        *evidence = Evidence { signature, ..shown };
        Ok((Some(minimized), why))
    }

    /// Looks again for the cause of a failure, in a run of which more accesses are steps than of the one before.
    fn explain_again(
        &mut self,
        failing: &Failing<'_>,
        conditions: &Conditions,
        evidence: &mut Evidence,
        folder: Option<PathBuf>,
        store: &mut FailureStore,
    ) -> Result<(), ExploreError> {
        let (signature, sites) = (evidence.signature.id.clone(), places_of(conditions));
        let Some(tried) = self.unexplained.get_mut(&signature).filter(|tried| tried.is_outdated(sites))
        else {
            return Ok(());
        };
        (tried.sites, tried.times) = (sites, tried.times + 1);
        let record = self.record(failing, conditions, evidence.confirmed);
        let (minimized, why) = match self.explain(failing, &record, evidence) {
            Err(RunError::Interrupted) => return Ok(()),
            explained => explained?,
        };
        if why.cause.is_none() {
            return Ok(());
        }
        self.unexplained.remove(&signature);
        store.explain(&signature, &why);
        if let Some(folder) = &folder {
            self.write(folder, failing, record, evidence, (minimized.as_ref(), &why))?;
        }
        for found in self.found.iter_mut().filter(|found| found.signature == signature) {
            found.why = why.clone();
        }
        Ok(())
    }

    /// Writes what is needed to run a failure again, and draws it.
    fn write(
        &self,
        folder: &Path,
        failing: &Failing<'_>,
        record: StrictRecord,
        evidence: &Evidence,
        (minimized, why): (Option<&Minimized>, &Why),
    ) -> Result<(), RecordError> {
        keep(folder, failing, record, minimized)?;
        let shown = minimized.map_or(failing.schedule, |minimized| &minimized.schedule);
        let kind = failing.failure.kind;
        let title = format!("{kind} in {}", self.plan.program.subject());
        let mut timeline = evidence.seen.timeline(&title, shown, kind.word());
        timeline.explain(why);
        recording::draw(folder, &timeline)
    }

    fn record(&self, failing: &Failing<'_>, conditions: &Conditions, confirmed: bool) -> StrictRecord {
        let Failing { planned, observed, failure, .. } = *failing;
        StrictRecord {
            format: recording::FORMAT,
            program: self.plan.program.clone(),
            conditions: conditions.clone(),
            expected: self.plan.expected.clone(),
            seed: self.plan.seed,
            run: planned.run.index + 1,
            index: planned.run.index,
            parameters: planned.parameters.clone(),
            kind: failure.kind,
            key: failure.key.clone(),
            steps: observed.steps,
            switches: observed.switches,
            threads: observed.threads,
            confirmed,
            partly_controlled: observed.partly_controlled,
        }
    }

    fn finding(&self, failing: &Failing<'_>, evidence: &Evidence, why: Why) -> Finding {
        let Failing { planned, observed, failure, .. } = *failing;
        let mut gaps = Vec::new();
        if let Some(instead) = &evidence.instead {
            gaps.push(format!(
                "a fresh process that followed the schedule did not fail in the same way: {instead}"
            ));
        }
        gaps.extend(evidence.seen.gaps.iter().cloned());
        if observed.partly_controlled {
            gaps.push(
                "the run was only partly controlled: something outside the schedule took part".to_owned(),
            );
        }
        let written = [("output", &observed.stdout), ("error output", &observed.stderr)];
        for (which, _) in written.iter().filter(|(_, bytes)| bytes.len() as u64 >= KEPT) {
            gaps.push(format!("of the {which} no more than the first {} MiB are kept", KEPT >> 20));
        }
        if observed.cut {
            gaps.push(
                "the schedule is longer than what can be recorded, so it cannot be replayed to its end"
                    .to_owned(),
            );
        }
        Finding {
            kind: failure.kind,
            signature: evidence.signature.clone(),
            what: failure.what.clone(),
            reason: match &evidence.race {
                Some(race) => Some(race.text.lines().join("\n")),
                None => {
                    let delays = evidence.seen.delayed.iter().map(DelayedText::sentence);
                    let all: Vec<String> = evidence.seen.waits.iter().cloned().chain(delays).collect();
                    Some(all.join("\n")).filter(|all| !all.is_empty())
                }
            },
            test: Some(self.plan.program.title()),
            plugin: None,
            occurrence: Occurrence {
                at: jiff::Timestamp::now(),
                scenario: self.plan.program.scenario(),
                worker: None,
                iteration: planned.run.index + 1,
                seed: waylay_dist::Seed::new(self.plan.seed),
                pid: 0,
                randomizer: None,
                workers: Vec::new(),
                pot: None,
            },
            stacks: evidence.seen.stacks.clone(),
            stacks_text: evidence.seen.text.clone(),
            log_tail: format!("{}{}", last_of(&observed.stdout), observed.stderr_text()),
            gaps,
            code: evidence.seen.code.clone(),
            why,
        }
    }
}

/// Writes down what is needed to run a failure again: minimised, if it was, with what was found beside it.
fn keep(
    folder: &Path,
    failing: &Failing<'_>,
    mut record: StrictRecord,
    minimized: Option<&Minimized>,
) -> Result<(), RecordError> {
    recording::write(folder, "stdout.txt", &failing.observed.stdout)?;
    recording::write(folder, "stderr.txt", &failing.observed.stderr)?;
    match minimized {
        None => recording::save(folder, &record, failing.schedule),
        Some(minimized) => minimize::save_shown(folder, &mut record, minimized, failing.schedule),
    }
}

/// A program that synchronises by sleeping is not wrong on a machine that is fast enough.
fn hint(observed: &Observed, conditions: &Conditions) -> Option<String> {
    let hurried = !conditions.run.idle_timeouts && observed.account.was_hurried();
    hurried.then(|| {
        format!("{}: if the program synchronises by sleeping, try --idle-timeouts", Statement::Hurried)
    })
}

/// The last part of an output, which may be as long as the reference that it is compared with.
fn last_of(output: &[u8]) -> String {
    let most = usize::try_from(KEPT).unwrap_or(usize::MAX);
    String::from_utf8_lossy(&output[output.len().saturating_sub(most)..]).into_owned()
}
