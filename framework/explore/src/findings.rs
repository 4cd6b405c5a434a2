//! What failing runs come to: each is confirmed, signed and kept, or only counted when many like it were before.

use std::collections::BTreeMap;
use std::path::Path;

use waylay_driver::failure::{Finding, Occurrence, Signature};
use waylay_driver::store::FailureStore;
use waylay_evidence::Symbolizer;
use waylay_schedule::Schedule;

use crate::confirm::{Evidence, confirm};
use crate::explorer::{ExploreError, Plan};
use crate::learner::Planned;
use crate::observed::Observed;
use crate::oracle::Failure;
use crate::places::places;
use crate::recording::{self, Conditions, RecordError, StrictRecord};
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
        }
    }

    /// Takes in a failing run, which was made under `conditions`; returns what is the first with its signature.
    pub(crate) fn take(
        &mut self,
        failing: &Failing<'_>,
        conditions: &Conditions,
    ) -> Result<Option<&Found>, ExploreError> {
        let Failing { planned, failure, schedule, .. } = *failing;
        let (seen, signature) = self.keys.entry(failure.key.clone()).or_default();
        *seen += 1;
        if *seen > EXAMINED_PER_KEY {
            self.not_examined += 1;
            let found = self.found.iter_mut().find(|found| Some(&found.signature) == signature.as_ref());
            if let Some(found) = found {
                found.count += 1;
            }
            return Ok(None);
        }
        let evidence = confirm(
            &self.plan.program,
            &self.plan.library,
            conditions,
            &self.plan.expected,
            (self.plan.seed, planned.run.index),
            schedule,
            failure,
            &mut self.names,
        )?;
        *signature = Some(evidence.signature.hash.clone());
        let finding = self.finding(failing, &evidence);
        if let Some(found) = self.found.iter_mut().find(|found| found.signature == evidence.signature.hash) {
            found.count += 1;
            self.store.record(finding, |_| Err(String::new()))?;
            return Ok(None);
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
            places: places(failure.kind, &evidence.seen.stacks, evidence.seen.threads(), &evidence.seen.text),
            count: 1,
            first_run: planned.run.index + 1,
            confirmed: evidence.confirmed,
            replay: folder.as_ref().map(|folder| format!("waylay replay {}", folder.display())),
            failure_dir: folder,
        });
        Ok(self.found.last())
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
            run: planned.run.index,
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
            reason: None,
            test: Some(self.plan.program.title()),
            plugin: None,
            occurrence: Occurrence {
                at: jiff::Timestamp::now(),
                scenario: "explore".to_owned(),
                worker: None,
                iteration: planned.run.index,
                seed: waylay_dist::Seed::new(self.plan.seed),
                pid: 0,
                randomizer: None,
                workers: Vec::new(),
                pot: None,
            },
            stacks: evidence.seen.stacks.clone(),
            stacks_text: evidence.seen.text.clone(),
            log_tail: format!("{}{}", String::from_utf8_lossy(&observed.stdout), observed.stderr_text()),
            gaps,
        }
    }
}
