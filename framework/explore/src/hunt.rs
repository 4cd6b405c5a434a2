//! A schedule for a failure that was only seen where nobody scheduled: first a search that is aimed at the functions of its
//! stacks, then one that is not aimed at anything.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;
use waylay_control_protocol::{Level, RunConditions};
use waylay_driver::failure::{FailureEntry, Kind};
use waylay_driver::store::load_failure;
use waylay_evidence::signature::normal_message;
use waylay_evidence::{Frame, Origin, origin};
use waylay_host::plan::{SchedulePlan, TestPlan, WorkerPlan};

use crate::directed::accusation::of_failure;
use crate::directed::directed;
use crate::explorer::{ExploreError, Plan, Progress, State, explore};
use crate::recording::{self, Conditions, RecordError};
use crate::summary::Found;

/// Part of the runs that may be aimed.
const AIMED_SHARE: u64 = 4;
/// What a schedule consists of, in the folder of a failure.
const FILES: [&str; 9] = [
    "schedule.bin",
    "found.bin",
    "minimized.bin",
    "minimized.json",
    "timeline.svg",
    "timeline.json",
    "stdout.txt",
    "stderr.txt",
    // Last: with it the failure is one of strict mode.
    "strict.json",
];

/// What came of a hunt.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Hunted {
    /// Whether the failure was found in strict mode.
    pub found: bool,
    /// Whether a search that was aimed at its stacks found it.
    pub aimed: bool,
    /// Schedules that were run.
    pub runs: u64,
    /// Failures of other kinds, or at other places, that were found meanwhile: their folders.
    pub others: Vec<PathBuf>,
    /// The folder of the failure as strict mode found it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_found: Option<PathBuf>,
}

/// A schedule of one test alone, with the random numbers that it had when it failed.
pub fn schedule_plan(
    entry: &FailureEntry,
    plugin: &Path,
    workers: u32,
    params: std::collections::BTreeMap<String, waylay_dist::Spec>,
) -> SchedulePlan {
    let run = entry.occurrences.first().map_or(0, |occurrence| occurrence.iteration);
    let worker = |slot| WorkerPlan { slot, first_iteration: run, iterations: Some(1), repeat: false };
    SchedulePlan {
        plugins: vec![plugin.to_owned()],
        tests: vec![TestPlan {
            plugin: 0,
            name: entry.test.clone().unwrap_or_default(),
            params,
            workers: (0..workers as usize).map(worker).collect(),
            contained: None,
            combiner: None,
        }],
        seed: entry.campaign_seed,
        run,
    }
}

/// How schedules of plugin tests are made unless a scenario says otherwise.
pub fn conditions(patience: std::time::Duration) -> Conditions {
    Conditions {
        run: RunConditions::of_test(Level::Auto),
        in_process: true,
        patience_ms: patience.as_millis() as u64,
        ..Conditions::default()
    }
}

/// Looks for a failure in strict mode.
pub fn hunt(plan: &Plan, wanted: &FailureEntry, progress: &mut dyn Progress) -> Result<Hunted, ExploreError> {
    let mut hunted = Hunted::default();
    let begun = Instant::now();
    let targets = of_failure(wanted);
    let all = plan.runs.unwrap_or(u64::MAX);
    if !targets.is_empty() {
        let plan = Plan {
            runs: Some(all / AIMED_SHARE),
            duration: plan.duration.map(|limit| limit / AIMED_SHARE as u32),
            ..plan.clone()
        };
        let directed = directed(&plan, &targets, progress)?;
        hunted.runs += directed.runs;
        hunted.take(wanted, &directed.found);
        (hunted.aimed, hunted.found) = (hunted.as_found.is_some(), hunted.as_found.is_some());
        if hunted.found || directed.interrupted {
            return Ok(hunted);
        }
    }
    let left = Plan {
        runs: plan.runs.map(|runs| runs.saturating_sub(hunted.runs)),
        duration: plan.duration.map(|limit| limit.saturating_sub(begun.elapsed())),
        ..plan.clone()
    };
    let mut watch = Watch { inner: progress, wanted, back: false };
    let summary = explore(&left, &mut watch)?;
    hunted.runs += summary.runs;
    hunted.take(wanted, &summary.found);
    hunted.found = hunted.as_found.is_some();
    Ok(hunted)
}

impl Hunted {
    fn take(&mut self, wanted: &FailureEntry, found: &[Found]) {
        for folder in
            found.iter().filter(|found| found.confirmed).filter_map(|found| found.failure_dir.clone())
        {
            match load_failure(&folder) {
                Ok(entry) if self.as_found.is_none() && is_same(wanted, &entry) => {
                    self.as_found = Some(folder)
                }
                _ => self.others.push(folder),
            }
        }
    }
}

/// Ends the exploration when the failure is there.
struct Watch<'a> {
    inner: &'a mut dyn Progress,
    wanted: &'a FailureEntry,
    back: bool,
}

impl Progress for Watch<'_> {
    fn tick(&mut self, state: &State) -> bool {
        self.inner.tick(state) && !self.back
    }

    fn found(&mut self, found: &Found) {
        let entry = found.failure_dir.as_ref().and_then(|folder| load_failure(folder).ok());
        self.back |= found.confirmed && entry.is_some_and(|entry| is_same(self.wanted, &entry));
        self.inner.found(found);
    }

    fn note(&mut self, text: &str) {
        self.inner.note(text);
    }
}

/// Whether a failure of one process is the one that a host showed: of a like kind, and it says the same or is in the same
/// functions.
fn is_same(wanted: &FailureEntry, found: &FailureEntry) -> bool {
    let broke = |kind: Kind| matches!(kind, Kind::Crash | Kind::Assert | Kind::Exception | Kind::Exit);
    let (one, other) = (wanted.kind, found.kind);
    let alike = one == other || broke(one) && broke(other) || one.is_hang() && other.is_hang();
    let message = normal_message(&wanted.what);
    let says = !message.is_empty() && message == normal_message(&found.what);
    let hangs = one.is_hang();
    let there = functions(wanted, hangs, wanted.plugin.as_deref());
    alike
        && (says && !hangs || !there.is_empty() && there == functions(found, hangs, wanted.plugin.as_deref()))
}

/// The innermost functions of a plugin: of the thread that broke, or of all that hang.
fn functions<'a>(entry: &'a FailureEntry, all: bool, plugin: Option<&Path>) -> BTreeSet<&'a str> {
    let name = plugin.and_then(Path::file_name);
    let within = |frame: &&Frame| {
        frame.module.as_deref().is_some_and(|module| Path::new(module).file_name() == name) && name.is_some()
    };
    let own = |frame: &&Frame| origin(frame) == Origin::Own;
    let stacks = entry.stacks.iter().take(if all { usize::MAX } else { 1 });
    stacks.filter_map(|stack| stack.frames.iter().filter(within).find(own)?.function.as_deref()).collect()
}

/// Gives a failure the schedule that was found for it.
pub fn attach(folder: &Path, as_found: &Path) -> Result<(), RecordError> {
    let file = |path: &Path, source| RecordError::File { path: path.to_owned(), source };
    let found = load_failure(as_found).map_err(|source| file(as_found, source))?;
    let mut entry = load_failure(folder).map_err(|source| file(folder, source))?;
    entry.why = found.why;
    let path = folder.join("failure.json");
    let text = serde_json::to_vec_pretty(&entry).map_err(|source| RecordError::Record { path, source })?;
    recording::write(folder, "failure.json", &text)?;
    for name in FILES {
        let from = as_found.join(name);
        match fs::read(&from) {
            Ok(content) => recording::write(folder, name, &content)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(source) => return Err(file(&from, source)),
        }
    }
    Ok(())
}
