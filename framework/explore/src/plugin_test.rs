//! Schedules of plugin tests: a test is a program like any other once its host runs it alone.
//!
//! A campaign finds failing schedules in hosts that run many of them; here such a schedule is run again in a fresh
//! process, held where it fails, and written down in the form that replaying, minimising and debugging know.

use std::path::{Path, PathBuf};

use waylay_control_protocol::Level;
use waylay_driver::campaign::{Examination, Examiner, FailedSchedule};
use waylay_driver::config::{StepLevel, TimeoutRule};
use waylay_driver::failure::Kind;
use waylay_evidence::{Symbolizer, ThreadStack};
use waylay_host::plan::SchedulePlan;

use crate::confirm::{Rerun, rerun};
use crate::oracle::{Expected, Failure, NO_END, Verdict};
use crate::program::Program;
use crate::recording::{self, Conditions, Steps, StrictRecord};

/// The subcommand that runs one schedule, and its option.
const HOST: [&str; 2] = ["host", "--schedule"];

/// The host that runs one schedule of a test, as a program.
pub fn program(executable: &Path, plan: &SchedulePlan) -> Program {
    Program {
        file: executable.to_owned(),
        name: executable.display().to_string(),
        arguments: HOST.iter().map(|&word| word.to_owned()).chain([plan.to_argument()]).collect(),
        environment: Vec::new(),
        folder: std::env::current_dir().unwrap_or_default(),
        isolated: false,
        stdin: None,
        title: Some(plan.title().0.to_owned()),
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
}

impl Confirmer {
    /// With this command and control library.
    pub fn new(executable: PathBuf, library: PathBuf) -> Confirmer {
        Confirmer { executable, library, names: Symbolizer::default() }
    }
}

impl Examiner for Confirmer {
    fn examine(&mut self, failed: &FailedSchedule) -> Result<Box<dyn Examination>, String> {
        let program = program(&self.executable, &failed.plan);
        let conditions = Conditions {
            max_steps: failed.strict.max_steps.get(),
            patience_ms: failed.patience.as_millis() as u64,
            idle_timeouts: failed.strict.timeouts == TimeoutRule::Idle,
            in_process: true,
            calls: false,
            guard: false,
            steps: Steps { level: level(failed.strict.level), ..Steps::default() },
            ..Conditions::default()
        };
        let expected = Expected::default();
        let run = (failed.seed, failed.plan.run);
        let seen =
            rerun(&program, &self.library, &conditions, &expected, run, &failed.schedule, &mut self.names)
                .map_err(|error| error.to_string())?;
        let again = match &seen.verdict {
            Verdict::Failed(again) => Some(again),
            Verdict::Passed => None,
        };
        let (instead, key) = match again {
            Some(again) if is_alike(failed.kind, again) => (None, again.key.clone()),
            Some(other) => (Some(other.what.clone()), format!("{} unconfirmed", failed.kind)),
            None => (Some("it ended without a failure".to_owned()), format!("{} unconfirmed", failed.kind)),
        };
        let record = StrictRecord {
            format: recording::FORMAT,
            program,
            conditions,
            expected,
            seed: failed.seed,
            run: failed.plan.run,
            parameters: failed.parameters.clone(),
            kind: failed.kind,
            key,
            steps: failed.schedule.steps(),
            switches: failed.schedule.segments().len().saturating_sub(1) as u64,
            threads: failed.schedule.threads() as u32,
            confirmed: instead.is_none(),
            partly_controlled: failed.partly_controlled,
        };
        Ok(Box::new(Shown { seen, instead, record, schedule: failed.schedule.clone() }))
    }
}

fn level(level: StepLevel) -> Level {
    match level {
        StepLevel::Sync => Level::Sync,
        StepLevel::Atomics => Level::Atomics,
        StepLevel::Memory => Level::Memory,
    }
}

/// What broke looks different from inside a host and from outside of a process: an exception that nobody catches is an
/// abort for one and a failed assertion for the other.
fn is_alike(kind: Kind, again: &Failure) -> bool {
    let broke = |kind: Kind| matches!(kind, Kind::Crash | Kind::Assert);
    let hung = |kind: Kind| matches!(kind, Kind::Deadlock | Kind::Livelock | Kind::Starvation);
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
    schedule: waylay_schedule::Schedule,
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

    fn dump(&self, path: &Path) -> Result<usize, String> {
        self.seen.dump(path)
    }

    fn keep(&self, folder: &Path) -> Result<(), String> {
        let write = |name: &str, content: &[u8]| recording::write(folder, name, content);
        write("stdout.txt", &self.seen.observed.stdout)
            .and_then(|()| write("stderr.txt", &self.seen.observed.stderr))
            .and_then(|()| recording::save(folder, &self.record, &self.schedule))
            .and_then(|()| {
                let title = format!("{} in {}", self.record.kind, self.record.program.title());
                let timeline = self.seen.timeline(&title, &self.schedule, self.record.kind.word());
                recording::draw(folder, &timeline)
            })
            .map_err(|error| error.to_string())
    }
}
