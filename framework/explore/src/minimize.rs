//! The fewest forced switches with which a failure still happens, and what the two threads were doing at each.
//!
//! The recorded schedule becomes a list of switches (thread, step). A guided run forces those and preempts nobody
//! otherwise, so switches that happen by themselves, because a thread waits or ends, can be left out. What remains is
//! reduced by delta debugging (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002): parts
//! are left out, from halves down to single switches, for as long as the failure stays the same. The result is minimal
//! in the sense that no single switch of it can be left out; when more than one is left, every single switch of the run
//! is tried in its place.

use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;
use waylay_control_protocol::Switching;
use waylay_evidence::render::{self, RenderOptions};
use waylay_evidence::{Symbolizer, ThreadStack};
use waylay_schedule::{Schedule, ThreadId};

use crate::confirm::stacks_of;
use crate::held::hold;
use crate::oracle::{Verdict, judge};
use crate::recording::{self, RecordError, StrictRecord};
use crate::server::{Guide, RunError, Server};
use crate::sys::HOLD_THEMSELVES;

const SCHEDULE: &str = "minimized.bin";

/// A switch that has to be forced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ForcedSwitch {
    /// The step, 0 being the first of the run.
    pub step: u64,
    /// Who was running.
    pub from: u32,
    /// Who runs instead.
    pub to: u32,
    /// What the one that was running was about to do.
    pub from_stack: Option<String>,
    /// Where the other one goes on.
    pub to_stack: Option<String>,
}

/// What is left of a schedule.
#[derive(Clone, Debug, Serialize)]
pub struct Minimized {
    /// Switches of the recorded schedule.
    pub before: u64,
    /// Switches that have to be forced.
    pub after: u64,
    /// They.
    pub switches: Vec<ForcedSwitch>,
    /// Runs that were tried.
    pub runs: u64,
    /// Whether nothing more can be left out; otherwise the time was over.
    pub minimal: bool,
    /// The schedule that they lead to.
    #[serde(skip)]
    pub schedule: Schedule,
}

/// Why a failure could not be minimised.
#[derive(Debug, thiserror::Error)]
pub enum MinimizeError {
    /// A run could not be made.
    #[error(transparent)]
    Run(#[from] RunError),
    /// It could not be written down.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The failure does not come back.
    #[error(
        "the failure does not come back when its own switches are forced: the program does not repeat itself"
    )]
    NotReproduced,
}

/// Tries lists of switches.
struct Trial<'a> {
    record: &'a StrictRecord,
    server: Server,
    until: Instant,
    runs: u64,
    /// The schedule of the last list that failed.
    schedule: Schedule,
}

impl Trial<'_> {
    fn fails(&mut self, switches: &[(u32, u64)]) -> Result<bool, RunError> {
        let settings = self.server.settings(&self.record.conditions, self.record.seed, self.record.run);
        let observed = self.server.run(settings, Guide::Switches(switches))?;
        self.runs += 1;
        match judge(&observed, &self.record.expected) {
            Verdict::Failed(failure) if failure.key == self.record.key => {
                self.schedule = self.server.schedule().unwrap_or_default();
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn is_late(&self) -> bool {
        Instant::now() >= self.until
    }
}

/// Reduces a failure for at most `budget`.
pub fn minimize(
    record: &StrictRecord,
    schedule: &Schedule,
    library: &Path,
    budget: Duration,
) -> Result<Minimized, MinimizeError> {
    let server = Server::start(&record.program, library, &record.conditions)?;
    let until = Instant::now() + budget;
    let mut trial = Trial { record, server, until, runs: 0, schedule: Schedule::default() };
    let all: Vec<(u32, u64)> =
        schedule.switches().iter().skip(1).map(|switch| (switch.thread.0, switch.step)).collect();
    if !trial.fails(&all)? {
        return Err(MinimizeError::NotReproduced);
    }
    let (mut least, minimal) =
        reduce(all.clone(), |switches| Ok(if trial.is_late() { None } else { Some(trial.fails(switches)?) }))
            .map_err(MinimizeError::Run)?;
    if least.len() > 1
        && let Some(single) = single(&mut trial)?
    {
        least = vec![single];
    }
    if !trial.fails(&least)? {
        return Err(MinimizeError::NotReproduced);
    }
    let schedule = std::mem::take(&mut trial.schedule);
    let runners: Vec<(u64, ThreadId)> =
        schedule.switches().iter().map(|switch| (switch.step, switch.thread)).collect();
    let mut switches = Vec::new();
    let mut names = Symbolizer::default();
    for &(to, step) in &least {
        let before = runners.iter().rev().find(|&&(begin, _)| begin < step);
        let from = before.map_or(0, |&(_, thread)| thread.0);
        let (from_stack, to_stack) = stacks_at(record, library, &least, step, (from, to), &mut names);
        switches.push(ForcedSwitch { step, from, to, from_stack, to_stack });
    }
    Ok(Minimized {
        before: all.len() as u64,
        after: least.len() as u64,
        switches,
        runs: trial.runs,
        minimal,
        schedule,
    })
}

/// Looks for one switch that is enough: leaving out parts of a list cannot find a switch that is not in it.
fn single(trial: &mut Trial<'_>) -> Result<Option<(u32, u64)>, RunError> {
    let (threads, steps) = (trial.schedule.threads() as u32, trial.schedule.steps());
    for step in 1..steps {
        for thread in 0..threads {
            if trial.is_late() {
                return Ok(None);
            }
            if trial.fails(&[(thread, step)])? {
                return Ok(Some((thread, step)));
            }
        }
    }
    Ok(None)
}

/// Delta debugging: leaves out what can be left out. `fails` says whether a list still fails, or that time is over.
fn reduce<T: Clone, E>(
    mut list: Vec<T>,
    mut fails: impl FnMut(&[T]) -> Result<Option<bool>, E>,
) -> Result<(Vec<T>, bool), E> {
    match fails(&[])? {
        None => return Ok((list, false)),
        Some(true) => return Ok((Vec::new(), true)),
        Some(false) => {}
    }
    let mut parts = 2;
    while !list.is_empty() {
        let size = list.len().div_ceil(parts);
        let mut reduced = false;
        let mut start = 0;
        while start < list.len() {
            let end = (start + size).min(list.len());
            let rest: Vec<T> = list[..start].iter().chain(&list[end..]).cloned().collect();
            match fails(&rest)? {
                None => return Ok((list, false)),
                Some(true) => {
                    list = rest;
                    reduced = true;
                }
                Some(false) => start = end,
            }
        }
        match (size, reduced) {
            (1, false) => return Ok((list, true)),
            (1, true) => parts = list.len().max(1),
            (_, true) => parts = 2,
            (_, false) => parts = (parts * 2).min(list.len()),
        }
    }
    Ok((list, true))
}

/// The stacks of two threads when a switch is about to be made, from a process of its own that is ended there.
fn stacks_at(
    record: &StrictRecord,
    library: &Path,
    switches: &[(u32, u64)],
    step: u64,
    (from, to): (u32, u32),
    names: &mut Symbolizer,
) -> (Option<String>, Option<String>) {
    let mut take = || -> Option<(Vec<ThreadStack>, Vec<waylay_evidence::ThreadId>)> {
        let mut region = record.conditions.region().ok()?;
        let mut settings = record.conditions.settings_in(&mut region, record.seed, record.run);
        settings.switching = Switching::Baton as u32;
        settings.max_steps = step;
        settings.hold = u32::from(HOLD_THEMSELVES);
        Guide::Switches(switches).prepare(&mut region, settings).ok()?;
        let held = hold(&record.program, library, &region, record.conditions.patience()).ok()?;
        Some((stacks_of(&held, names).ok()?, held.threads.clone()))
    };
    let Some((stacks, threads)) = take() else { return (None, None) };
    let of = |thread: u32| {
        let kernel = threads.get(thread as usize)?;
        let stack = stacks.iter().find(|stack| stack.id == *kernel)?;
        let text = render::stacks(std::slice::from_ref(stack), RenderOptions::default());
        // The heading says how the thread was stopped for this, which is of no interest.
        Some(text.lines().skip(1).collect::<Vec<_>>().join("\n"))
    };
    (of(from), of(to))
}

/// Writes the result into the failure's folder.
pub fn save(folder: &Path, minimized: &Minimized) -> Result<(), RecordError> {
    recording::write(folder, SCHEDULE, &minimized.schedule.encode())?;
    let path = folder.join("minimized.json");
    let text = serde_json::to_vec_pretty(minimized).map_err(|source| RecordError::Record { path, source })?;
    recording::write(folder, "minimized.json", &text)
}

/// The minimised schedule of a failure.
pub fn load_minimized(failure: &Path) -> Result<Schedule, RecordError> {
    let path = recording::folder_of(failure).join(SCHEDULE);
    let bytes = std::fs::read(&path).map_err(|source| RecordError::File { path: path.clone(), source })?;
    Schedule::decode(&bytes).map_err(|source| RecordError::Schedule { path, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn least(all: u32, needed: &[u32]) -> Vec<u32> {
        let fails = |list: &[u32]| Ok::<_, ()>(Some(needed.iter().all(|item| list.contains(item))));
        let (list, minimal) = reduce((0..all).collect(), fails).unwrap();
        assert!(minimal);
        list
    }

    #[test]
    fn what_is_needed_remains_and_nothing_else() {
        assert_eq!(least(100, &[]), Vec::<u32>::new());
        assert_eq!(least(100, &[17]), [17]);
        assert_eq!(least(1000, &[0, 499, 500, 999]), [0, 499, 500, 999]);
        assert_eq!(least(1, &[0]), [0]);
        assert_eq!(least(5, &[0, 1, 2, 3, 4]), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn when_the_time_is_over_the_best_so_far_is_kept() {
        let mut left = 5;
        let (list, minimal) = reduce((0..64).collect::<Vec<u32>>(), |list| {
            left -= 1;
            Ok::<_, ()>((left >= 0).then(|| list.contains(&3)))
        })
        .unwrap();
        assert!(!minimal && list.contains(&3) && list.len() < 64, "{list:?}");
    }
}
