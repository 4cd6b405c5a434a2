//! Failures of strict tests: what the control library found out itself, and every failure run again before it is told.
//!
//! In the host that failed, threads are fibers on one kernel thread, so a look from outside shows the failing thread at
//! best. The evidence comes from a fresh process that follows the schedule with a kernel thread for each thread.

use waylay_evidence::ThreadStack;
use waylay_evidence::signature::{Signature as EvidenceSignature, normal_message};

use super::draft::Draft;
use super::progress::Progress;
use super::scene::Scene;
use super::session::Session;
use super::strict::{Examination, FailedSchedule};
use super::supervisor::Supervisor;
use crate::failure::{Kind, Signature};
use crate::host::{ControlRegion, StoppedBy};
use crate::report::{count, plural};

/// Failures that look alike and are examined; the rest are counted.
const EXAMINED_ALIKE: u64 = 3;

impl Supervisor<'_> {
    /// Looks whether the library stopped the schedule. True when the host cannot go on.
    pub(super) fn take_verdict(&mut self, session: &mut Session, progress: &mut Progress) -> bool {
        let Some(region) = &session.region else { return false };
        let (verdict, account) = match region.stopped_by() {
            None => return false,
            Some(verdict) => (verdict, region.account()),
        };
        if verdict == StoppedBy::Refused {
            let text = account.text();
            self.problem(format!("scenario {}: the control library refuses: {}", progress.name, text.trim()));
            if let Some(test) = progress.turn.and_then(|turn| progress.tests.get_mut(turn)) {
                test.retired = Some(format!("cannot run: {}", text.trim()));
            }
            return true;
        }
        let at_limit = verdict == StoppedBy::StepLimit;
        if at_limit && progress.current_strict().is_some_and(|test| !test.fails_at_limit()) {
            return true;
        }
        let steps = region.schedule().steps();
        let scene = Scene::of(session, progress, self.clock, &self.log);
        let draft = self.investigator.stopped(&scene, verdict, &account, steps, self.campaign.record.seed);
        self.record(session, progress, draft);
        true
    }

    /// Whether a schedule that is late waits for what is not under control: that is a limit, and what waits may come later. The host
    /// cannot go on.
    pub(super) fn take_wait(&mut self, session: &Session, progress: &mut Progress) -> bool {
        let Some(region) = session.region.as_ref().filter(|region| region.awaits()) else { return false };
        let Some(fails) = progress.current_strict().map(|test| test.fails_at_limit()) else { return false };
        if fails {
            let (account, steps) = (region.account(), region.schedule().steps());
            let (scene, seed) =
                (Scene::of(session, progress, self.clock, &self.log), self.campaign.record.seed);
            let draft = self.investigator.stopped(&scene, StoppedBy::StepLimit, &account, steps, seed);
            self.record(session, progress, draft);
        }
        true
    }

    /// Runs the schedule again, puts the failure on disk with what is needed to repeat it, and tells about it.
    pub(super) fn record_strict(&mut self, session: &Session, progress: &mut Progress, mut draft: Draft) {
        let test = draft.test;
        // The dump is of the process that runs the schedule again.
        draft.still = None;
        let examination = match self.wanted(session, progress, &mut draft) {
            Some((key, mut failed)) => {
                let wanted = failed.strict.minimize;
                (failed.strict.minimize, failed.explaining) = progress.explaining.grant(wanted);
                let (examination, gap) = match &mut self.examiner {
                    Some(examiner) => match examiner.examine(&failed) {
                        Ok(examination) => (Some(examination), None),
                        Err(reason) => (None, Some(format!("the schedule could not be run again: {reason}"))),
                    },
                    None => (None, Some("schedules cannot be run again here".to_owned())),
                };
                draft.finding.gaps.extend(gap);
                describe(&mut draft, &failed, examination.as_deref());
                if let Some(examination) = &examination {
                    progress.explaining.took(examination.explained());
                }
                let confirmed =
                    examination.as_ref().is_some_and(|examination| examination.instead().is_none());
                if confirmed && wanted.0.is_some() && failed.strict.minimize.0.is_none() {
                    let why = "the scenario's time for explaining failures is used up";
                    draft.finding.why.no_cause.get_or_insert_with(|| why.to_owned());
                }
                if examination.as_ref().is_none_or(|examination| examination.instead().is_some())
                    && let Some(test) = progress.current_strict()
                {
                    test.unconfirmed += 1;
                    let name = &progress.name;
                    if session.region.as_ref().is_some_and(ControlRegion::stores_waited) {
                        // A store that is not seen may have overtaken one that waited.
                        self.problem(format!(
                            "scenario {name}: a failure in which stores waited is not reported: {}",
                            draft.finding.gaps.join("; ")
                        ));
                        return;
                    }
                }
                let entry = self.examined.0.entry(key).or_default();
                *entry = (entry.0 + 1, Some(draft.finding.signature.clone()));
                examination
            }
            None => None,
        };
        let signature = draft.finding.signature.id.clone();
        let is_new = !self.failures.entries().iter().any(|entry| entry.signature.id == signature);
        let Draft { finding, shelved, .. } = draft;
        let folder = self.failures.folder_of(&signature);
        // What was seen before without a schedule has one from now on: it can be run again, and that leads.
        let confirmed = examination.as_ref().filter(|examination| examination.instead().is_none());
        let first_schedule = confirmed.filter(|_| !is_new && folder.is_dir() && !has_schedule(&folder));
        let leading = first_schedule.map(|_| finding.clone());
        let mut lost = Ok(());
        let dumper = self.dumper.clone();
        self.keep_with(
            finding,
            shelved,
            |path| match &examination {
                Some(examination) => examination.dump(path, &dumper),
                None => Err("it was not run again".to_owned()),
            },
            || {
                if let (true, Some(examination)) = (is_new, &examination) {
                    lost = examination.keep(&folder);
                }
            },
        );
        if let (Some(leading), Some(examination)) = (leading, &examination) {
            lost = examination.keep(&folder);
            self.failures.lead(leading);
        }
        if let Err(reason) = lost {
            self.problem(reason);
        }
        self.count_failure(session, progress, test);
    }

    /// The failing schedule, unless enough that look alike were examined, or there is none to be repeated.
    fn wanted(
        &self,
        session: &Session,
        progress: &mut Progress,
        draft: &mut Draft,
    ) -> Option<(String, FailedSchedule)> {
        let region = session.region.as_ref()?;
        let finding = &mut draft.finding;
        if finding.kind == Kind::Slow || !draft.alive {
            return None;
        }
        draft.test?;
        let run = session.host.layout().workers[0].iteration.load(std::sync::atomic::Ordering::Relaxed);
        let schedule_plan = session.assignment.schedule(self.campaign.record.seed, run);
        let patience = session.assignment.limits.first()?.hang;
        let failed = progress.current_strict()?.failed(region, schedule_plan, finding.kind, patience);
        let key = format!("{} {}", finding.signature.id, normal_message(&finding.what));
        match self.examined.0.get(&key) {
            Some((seen, Some(signature))) if *seen >= EXAMINED_ALIKE => {
                finding.signature = signature.clone();
                None
            }
            _ => Some((key, failed)),
        }
    }
}

/// Whether a failure's folder has a schedule.
fn has_schedule(folder: &std::path::Path) -> bool {
    folder.join("schedule.bin").is_file()
}

/// Adds to a finding what is known about its schedule.
fn describe(draft: &mut Draft, failed: &FailedSchedule, examination: Option<&dyn Examination>) {
    let finding = &mut draft.finding;
    let mut reason = format!(
        "in schedule {} ({}), after {} and {}",
        count(failed.plan.run),
        failed.parameters.strategy,
        plural(failed.schedule.steps(), "step"),
        plural(failed.schedule.segments().len().saturating_sub(1) as u64, "switch"),
    );
    if failed.partly_controlled {
        finding.gaps.push(
            "the schedule was only partly controlled: something outside of it took part, so it may not repeat"
                .to_owned(),
        );
    }
    if failed.cut {
        finding.gaps.push("the schedule is longer than what can be recorded".to_owned());
    }
    if let Some(examination) = examination {
        match examination.instead() {
            None => reason += "; a fresh process that followed it failed in the same way",
            Some(instead) => finding.gaps.push(format!(
                "not confirmed: a fresh process that followed the schedule did not fail in the same way ({instead}). \
                 What earlier schedules left in global variables, real time, or something outside the schedule may \
                 take part"
            )),
        }
        finding.gaps.extend(examination.gaps().iter().cloned());
        finding.why = examination.why().clone();
        let seen = examination.stacks();
        if examination.instead().is_none() && !seen.is_empty() {
            let reported = finding.stacks.first().map(|stack| stack.frames.clone()).unwrap_or_default();
            finding.stacks = seen.to_vec();
            // A test that noticed a failure says where better than the place at which its process ended.
            if let (true, Some(first)) = (!reported.is_empty(), finding.stacks.first_mut()) {
                first.frames = reported;
            }
            if finding.kind == Kind::Deadlock {
                // The host that found it had other addresses, and nothing else names them.
                if !examination.waits().is_empty() {
                    finding.reason = Some(examination.waits().join("\n"));
                }
                let name = finding.test.clone().unwrap_or_default();
                let plugins = &failed.plan.plugins;
                let is_plugin = |module: &str| plugins.iter().any(|plugin| plugin.as_os_str() == module);
                let is_in_plugin = |stack: &ThreadStack| {
                    stack.frames.iter().any(|frame| frame.module.as_deref().is_some_and(is_plugin))
                };
                // The host's own thread only waits for the others.
                finding.stacks.sort_by_key(|stack| !is_in_plugin(stack));
                let involved = finding.stacks.iter().filter(|stack| is_in_plugin(stack));
                let signature = EvidenceSignature::of_hang("deadlock", &name, involved);
                finding.signature = Signature::new(Kind::Deadlock, signature);
            }
            finding.stacks_text = examination.text().to_owned();
        }
    }
    finding.reason = Some(match finding.reason.take() {
        Some(before) => format!("{before}\n{reason}"),
        None => reason,
    });
}
