//! What failing runs come to: each is confirmed, signed and kept, or only counted when many like it were before.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use waylay_control_protocol::HURRIED;
use waylay_driver::failure::{Finding, Kind, Occurrence, Signature};
use waylay_driver::store::FailureStore;
use waylay_evidence::Symbolizer;
use waylay_report::shell;
use waylay_schedule::Schedule;

use crate::confirm::{Evidence, confirm};
use crate::deliberate::Weighed;
use crate::explorer::{ExploreError, Plan};
use crate::learner::Planned;
use crate::observed::Observed;
use crate::oracle::Failure;
use crate::places::places;
use crate::recording::{self, Conditions, RecordError, StrictRecord};
use crate::server::RunError;
use crate::streams::KEPT;
use crate::summary::Found;

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
    pub(crate) store: FailureStore,
    /// Failing runs by key: how many there were, and the signature that the last examined one had.
    keys: BTreeMap<String, (u64, Option<String>)>,
    names: Symbolizer,
    /// Every signature, in the order in which they were found.
    pub(crate) found: Vec<Found>,
    /// Failing runs that were only counted.
    pub(crate) not_examined: u64,
    /// Keys of what looked like a race and is none.
    innocent: BTreeSet<String>,
    /// Races that a fresh process did not show, and those that may be none.
    pub(crate) unconfirmed_races: u64,
    /// What the first of the former showed instead.
    pub(crate) shown_instead: Option<String>,
    pub(crate) doubtful_races: u64,
}

/// What a failing run came to.
pub(crate) enum Taken {
    /// The first with its signature, which is the last of [`Findings::found`].
    New,
    /// One more of what is known.
    Again,
    /// No failure: accesses at these sites are atomic.
    Atomic(Vec<u64>),
}

impl<'a> Findings<'a> {
    pub(crate) fn new(plan: &'a Plan, store: FailureStore) -> Findings<'a> {
        Findings {
            plan,
            store,
            keys: BTreeMap::new(),
            names: Symbolizer::default(),
            found: Vec::new(),
            not_examined: 0,
            innocent: BTreeSet::new(),
            unconfirmed_races: 0,
            shown_instead: None,
            doubtful_races: 0,
        }
    }

    /// Takes in a failing run, which was made under `conditions`.
    pub(crate) fn take(
        &mut self,
        failing: &Failing<'_>,
        conditions: &Conditions,
    ) -> Result<Taken, ExploreError> {
        let Failing { planned, failure, schedule, .. } = *failing;
        if self.innocent.contains(&failure.key) {
            return Ok(Taken::Atomic(Vec::new()));
        }
        let (seen, signature) = self.keys.entry(failure.key.clone()).or_default();
        *seen += 1;
        // The key of a race names both places: there is no more to tell apart.
        let most = if failure.kind == Kind::Race { 1 } else { EXAMINED_PER_KEY };
        if *seen > most {
            self.not_examined += 1;
            let found = self.found.iter_mut().find(|found| Some(&found.signature) == signature.as_ref());
            if let Some(found) = found {
                found.count += 1;
                self.store.count_again(&found.signature, jiff::Timestamp::now());
            }
            return Ok(Taken::Again);
        }
        let evidence = match confirm(
            &self.plan.program,
            &self.plan.library,
            conditions,
            &self.plan.expected,
            (self.plan.seed, planned.run.index),
            schedule,
            failure,
            &mut self.names,
        ) {
            Err(RunError::Interrupted) => {
                self.not_examined += 1;
                return Ok(Taken::Again);
            }
            evidence => evidence?,
        };
        *signature = Some(evidence.signature.hash.clone());
        let mut failure = failure.clone();
        if failure.kind == Kind::Race {
            if let Some(sites) = self.acquit(&evidence) {
                self.innocent.insert(failure.key.clone());
                return Ok(Taken::Atomic(sites));
            }
            failure.what = evidence.race.as_ref().map_or(failure.what, |race| race.text.what());
        }
        let failing = &Failing { failure: &failure, ..*failing };
        let failure = &failure;
        let finding = self.finding(failing, &evidence);
        if let Some(found) = self.found.iter_mut().find(|found| found.signature == evidence.signature.hash) {
            found.count += 1;
            self.store.record(finding, |_| Err(String::new()))?;
            return Ok(Taken::Again);
        }
        let recorded = self.store.record(finding, |path| evidence.seen.dump(path))?;
        let folder = recorded.folder.map(|folder| std::path::absolute(&folder).unwrap_or(folder));
        if let Some(folder) = &folder {
            self.keep(folder, failing, conditions, evidence.confirmed)?;
            let title = format!("{} in {}", failure.kind, self.plan.program.title());
            recording::draw(folder, &evidence.seen.timeline(&title, schedule, failure.kind.word()))?;
        }
        self.found.push(Found {
            kind: failure.kind.word().to_owned(),
            signature: evidence.signature.hash.clone(),
            text: evidence.signature.text.clone(),
            what: failure.what.clone(),
            places: places(failure.kind, &evidence.seen.stacks),
            count: 1,
            first_run: planned.run.index + 1,
            confirmed: evidence.confirmed,
            instead: evidence.shown_instead(),
            replay: folder.as_ref().map(|folder| format!("waylay replay {}", shell::word(folder))),
            failure_dir: folder,
            race: evidence.race.map(|race| race.text),
            hint: hint(failing.observed, conditions),
        });
        Ok(Taken::New)
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

    fn keep(
        &self,
        folder: &Path,
        failing: &Failing<'_>,
        conditions: &Conditions,
        confirmed: bool,
    ) -> Result<(), RecordError> {
        let Failing { planned, observed, failure, schedule } = *failing;
        let record = StrictRecord {
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
        };
        recording::write(folder, "stdout.txt", &observed.stdout)?;
        recording::write(folder, "stderr.txt", &observed.stderr)?;
        recording::save(folder, &record, schedule)
    }

    fn finding(&self, failing: &Failing<'_>, evidence: &Evidence) -> Finding {
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
        if observed.cut {
            gaps.push(
                "the schedule is longer than what can be recorded, so it cannot be replayed to its end"
                    .to_owned(),
            );
        }
        Finding {
            kind: failure.kind,
            signature: Signature {
                id: evidence.signature.hash.clone(),
                text: evidence.signature.text.clone(),
            },
            what: failure.what.clone(),
            reason: match &evidence.race {
                Some(race) => Some(race.text.lines().join("\n")),
                None => Some(evidence.seen.waits.join("\n")).filter(|waits| !waits.is_empty()),
            },
            test: Some(self.plan.program.title()),
            plugin: None,
            occurrence: Occurrence {
                at: jiff::Timestamp::now(),
                scenario: "explore".to_owned(),
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
        }
    }
}

/// A program that synchronises by sleeping is not wrong on a machine that is fast enough.
fn hint(observed: &Observed, conditions: &Conditions) -> Option<String> {
    let hurried = !conditions.idle_timeouts && observed.text.lines().any(|line| line == HURRIED);
    hurried.then(|| format!("{HURRIED}: if the program synchronises by sleeping, try --idle-timeouts"))
}

/// The last part of an output, which may be as long as the reference that it is compared with.
fn last_of(output: &[u8]) -> String {
    let most = usize::try_from(KEPT).unwrap_or(usize::MAX);
    String::from_utf8_lossy(&output[output.len().saturating_sub(most)..]).into_owned()
}
