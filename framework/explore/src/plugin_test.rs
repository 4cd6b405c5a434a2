//! Schedules of plugin tests: a test is a program like any other once its host runs it alone.
//!
//! A campaign finds failing schedules in hosts that run many of them; here such a schedule is run again in a fresh
//! process, held where it fails, and written down in the form that replaying, minimising and debugging know.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use waylay_driver::campaign::{Examination, Examiner, FailedSchedule, LibraryConflicts, LibraryLook};
use waylay_driver::config::Strict;
use waylay_driver::dumps::Dumper;
use waylay_driver::failure::Kind;
use waylay_driver::store::Dumped;
use waylay_evidence::{Symbolizer, ThreadStack};
use waylay_host::plan::SchedulePlan;
use waylay_report::cause::Why;
use waylay_schedule::{Schedule, Spec};

use crate::confirm::{Rerun, rerun};
use crate::explain::{Explanation, explain};
use crate::explorer::Plan;
use crate::libraries::{self, LOOKS};
use crate::minimize::{self, Minimized};
use crate::observed::to_stretches;
use crate::oracle::{Expected, Failure, NO_END, Verdict};
use crate::program::Program;
use crate::recording::{self, Before, Conditions, Steps, StrictRecord};
use crate::restart::Restart;
use crate::server::Guide;

/// The subcommand that runs one schedule, and its option.
const HOST: [&str; 2] = ["host", "--schedule"];

/// What the scenario says of a schedule that reaches the limit of steps holds here, too.
fn expected(failed: &FailedSchedule) -> Expected {
    Expected { limit_is_failure: failed.strict.limit_is_failure, ..Expected::default() }
}

/// The host that runs one schedule of a test, as a program.
pub fn program(executable: &Path, plan: &SchedulePlan) -> Program {
    Program {
        file: executable.to_owned(),
        name: executable.display().to_string(),
        arguments: HOST.iter().map(|&word| word.to_owned()).chain([plan.to_argument()]).collect(),
        environment: Vec::new(),
        unset: Vec::new(),
        folder: std::env::current_dir().unwrap_or_default(),
        isolated: false,
        reference: 0,
        stdin: None,
        title: Some(plan.title().0.to_owned()),
        suite: None,
    }
}

/// Whether a recorded program is the host of a test.
pub fn is_host(program: &Program) -> bool {
    program.arguments.iter().map(String::as_str).take(HOST.len()).eq(HOST)
}

/// Runs failing schedules again.
pub struct Confirmer {
    executable: PathBuf,
    library: PathBuf,
    names: Symbolizer,
    /// Failures whose cause was found already, by test and key.
    explained: BTreeSet<String>,
}

impl Confirmer {
    /// With this command and control library.
    pub fn new(executable: PathBuf, library: PathBuf) -> Confirmer {
        Confirmer { executable, library, names: Symbolizer::default(), explained: BTreeSet::new() }
    }
}

/// Schedules of the process that found a failure that are run again before it, at most: some seconds, also where each
/// thread is a kernel thread.
const MOST_BEFORE: u64 = 20_000;

/// What a fresh process may run before a failing schedule, the least first: nothing if the process that found it had just begun, or
/// what that one began with; and all that it ran.
fn before(failed: &FailedSchedule) -> Vec<Option<Before>> {
    let Some(past) = &failed.past else { return vec![None] };
    let run = failed.plan.run;
    let through = |through: u64| {
        let (first, repeats, parameters) = (past.first, past.repeats, past.parameters.clone());
        let sites = failed.steps.is_some().then_some(past.sites);
        let through = through.clamp(first, run.max(first));
        let before = Before { first, repeats, through, parameters, sites };
        (before.earlier().count() > 0).then_some(before)
    };
    let mut all = vec![through(past.first + 1), through(past.first + MOST_BEFORE)];
    all.dedup();
    all
}

/// A schedule that was run again, and how it went.
struct Attempt {
    conditions: Conditions,
    seen: Rerun,
    /// What it showed instead of the failure, and what makes the failure the same as others.
    instead: Option<String>,
    key: String,
}

impl Attempt {
    /// It failed in the same way, at the same step.
    fn is_exact(&self) -> bool {
        self.instead.is_none() && self.seen.observed.diverged.is_none()
    }
}

impl Confirmer {
    fn attempt(
        &mut self,
        program: &Program,
        failed: &FailedSchedule,
        before: Option<Before>,
    ) -> Result<Attempt, String> {
        let steps = Steps {
            sites: failed.steps.as_ref().map(|steps| steps.sites.iter().map(|site| site.0).collect()),
            profiled: failed.steps.as_ref().is_some_and(|steps| steps.looked_at),
            handed: failed.steps.as_ref().is_some_and(|steps| steps.handed),
            ..Steps::default()
        };
        let conditions = Conditions { before, ..conditions(&failed.strict, steps, failed.patience) };
        let expected = expected(failed);
        let run = (failed.seed, failed.plan.run);
        let stretches = to_stretches(&failed.schedule);
        let guide = Guide::Schedule(&stretches);
        let seen = rerun(program, &self.library, &conditions, &expected, run, guide, &mut self.names)
            .map_err(|error| error.to_string())?;
        let (instead, key) = match &seen.verdict {
            _ if !seen.observed.reached => (
                Some("a schedule that came before it did not end".to_owned()),
                format!("{} unconfirmed", failed.kind),
            ),
            Verdict::Failed(again) if is_alike(failed.kind, again) => (None, again.key.clone()),
            Verdict::Failed(other) => (Some(other.what.clone()), format!("{} unconfirmed", failed.kind)),
            Verdict::Passed => {
                (Some("it ended without a failure".to_owned()), format!("{} unconfirmed", failed.kind))
            }
            Verdict::Unfinished => {
                (Some("it reached a limit".to_owned()), format!("{} unconfirmed", failed.kind))
            }
        };
        Ok(Attempt { conditions, seen, instead, key })
    }
}

/// How schedules of a test are made, as its scenario says; of `steps` the level and the patches.
fn conditions(strict: &Strict, steps: Steps, patience: Duration) -> Conditions {
    Conditions {
        run: strict.conditions.clone(),
        patience_ms: patience.as_millis() as u64,
        in_process: true,
        steps,
        before: None,
    }
}

impl Examiner for Confirmer {
    fn conflicts(&mut self, look: &LibraryLook) -> Option<LibraryConflicts> {
        let sites = Some(look.sites.iter().map(|site| site.0).collect());
        let conditions = conditions(&look.strict, Steps { sites, ..Steps::default() }, look.patience);
        let plan = Plan {
            program: program(&self.executable, &look.plan),
            strategy: Spec::Random,
            seed: look.seed,
            runs: Some(LOOKS),
            duration: None,
            stop_on_first: false,
            stop_after_quiet: None,
            own_threads: 0,
            jobs: 1,
            restart: Restart::Fork,
            conditions: conditions.clone(),
            expected: Expected::default(),
            out: PathBuf::new(),
            library: self.library.clone(),
            minimize: None,
            share: None,
        };
        // What cannot be looked at stays a reason.
        libraries::look(&plan, &conditions, &look.libraries).ok().flatten()
    }

    fn examine(&mut self, failed: &FailedSchedule) -> Result<Box<dyn Examination>, String> {
        let program = program(&self.executable, &failed.plan);
        let mut shown: Option<Attempt> = None;
        for before in before(failed) {
            let attempt = self.attempt(&program, failed, before)?;
            // What the least shows stays, unless more shows more.
            let better =
                |kept: &Attempt| attempt.is_exact() || kept.instead.is_some() && attempt.instead.is_none();
            if shown.as_ref().is_none_or(better) {
                shown = Some(attempt);
            }
            if shown.as_ref().is_some_and(Attempt::is_exact) {
                break;
            }
        }
        let Some(Attempt { conditions, seen, instead, key }) = shown else {
            return Err("there was nothing to run".to_owned());
        };
        let expected = expected(failed);
        let record = StrictRecord {
            format: recording::FORMAT,
            program,
            conditions,
            expected,
            seed: failed.seed,
            run: failed.plan.run,
            index: failed.plan.run,
            parameters: failed.parameters.clone(),
            kind: failed.kind,
            key,
            steps: failed.schedule.steps(),
            switches: failed.schedule.segments().len().saturating_sub(1) as u64,
            threads: failed.schedule.threads() as u32,
            confirmed: instead.is_none(),
            partly_controlled: failed.partly_controlled,
        };
        let mut shown = Shown {
            seen,
            instead,
            schedule: failed.schedule.clone(),
            minimized: None,
            why: Why::default(),
            explained: Duration::ZERO,
            record: record.clone(),
        };
        let Some(budget) = failed.strict.minimize.0.filter(|_| shown.instead.is_none() && !failed.cut) else {
            return Ok(Box::new(shown));
        };
        let name = format!("{} {}", record.program.title(), record.key);
        if record.key.ends_with(NO_END) || self.explained.contains(&name) {
            return Ok(Box::new(shown));
        }
        // What cannot be explained is shown as it was found.
        let begun = Instant::now();
        let budget = (budget, failed.explaining);
        let explained = explain(&record, &failed.schedule, &self.library, budget, &mut self.names);
        if let Ok(Explanation { minimized, why }) = explained {
            if why.cause.is_some() {
                self.explained.insert(name);
            }
            shown.why = why;
            if let Some(minimized) = minimized
                && let Ok(again) = self.again(&record, &minimized.schedule)
            {
                (shown.seen, shown.minimized) = (again, Some(minimized));
            }
        }
        shown.explained = begun.elapsed();
        Ok(Box::new(shown))
    }
}

impl Confirmer {
    /// The minimised schedule in a fresh process, if it fails there in the same way.
    fn again(&mut self, record: &StrictRecord, schedule: &Schedule) -> Result<Rerun, String> {
        let StrictRecord { program, conditions, expected, seed, index, .. } = record;
        let run = (*seed, *index);
        let stretches = to_stretches(schedule);
        let guide = Guide::Schedule(&stretches);
        let seen = rerun(program, &self.library, conditions, expected, run, guide, &mut self.names)
            .map_err(|error| error.to_string())?;
        match &seen.verdict {
            Verdict::Failed(again) if again.key == record.key && seen.observed.reached => Ok(seen),
            _ => Err("it does not fail in the same way".to_owned()),
        }
    }
}

/// What broke looks different from inside a host and from outside of a process: an exception that nobody catches is an
/// abort for one and a failed assertion for the other.
fn is_alike(kind: Kind, again: &Failure) -> bool {
    let broke = |kind: Kind| matches!(kind, Kind::Crash | Kind::Assert | Kind::Exception | Kind::Exit);
    // What waits is told as a deadlock only by those who know for what.
    let hung = |kind: Kind| matches!(kind, Kind::Livelock | Kind::Starvation);
    match again.cause.as_str() {
        // Killed because it was late: whatever held it up there holds it up here.
        NO_END => hung(kind),
        _ => again.kind == kind || broke(kind) && broke(again.kind),
    }
}

struct Shown {
    seen: Rerun,
    instead: Option<String>,
    record: StrictRecord,
    schedule: Schedule,
    minimized: Option<Minimized>,
    why: Why,
    explained: Duration,
}

impl Examination for Shown {
    fn instead(&self) -> Option<&str> {
        self.instead.as_deref()
    }

    fn stacks(&self) -> &[ThreadStack] {
        &self.seen.stacks
    }

    fn text(&self) -> &str {
        &self.seen.text
    }

    fn waits(&self) -> &[String] {
        &self.seen.waits
    }

    fn gaps(&self) -> &[String] {
        &self.seen.gaps
    }

    fn why(&self) -> &Why {
        &self.why
    }

    fn explained(&self) -> Duration {
        self.explained
    }

    fn dump(&self, path: &Path, dumper: &Dumper) -> Result<Dumped, String> {
        self.seen.dump(path, dumper)
    }

    fn keep(&self, folder: &Path) -> Result<(), String> {
        let write = |name: &str, content: &[u8]| recording::write(folder, name, content);
        write("stdout.txt", &self.seen.observed.stdout)
            .and_then(|()| write("stderr.txt", &self.seen.observed.stderr))
            .and_then(|()| match &self.minimized {
                None => recording::save(folder, &self.record, &self.schedule),
                Some(minimized) => {
                    minimize::save_shown(folder, &mut self.record.clone(), minimized, &self.schedule)
                }
            })
            .and_then(|()| {
                let title = format!("{} in {}", self.record.kind, self.record.program.title());
                let schedule =
                    self.minimized.as_ref().map_or(&self.schedule, |minimized| &minimized.schedule);
                let mut timeline = self.seen.timeline(&title, schedule, self.record.kind.word());
                timeline.explain(&self.why);
                recording::draw(folder, &timeline)
            })
            .map_err(|error| error.to_string())
    }
}
