//! The fewest forced switches with which a failure still happens, and what the two threads were doing at each.
//!
//! The recorded schedule becomes a list of switches, each at a step of the thread that is stopped. A guided run forces
//! those and preempts nobody otherwise, so switches that happen by themselves, because a thread waits or ends, can be left
//! out. What remains is reduced by delta debugging (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing
//! Input", 2002): parts are left out, from halves down to single switches, for as long as the failure stays the same. The
//! result is minimal in the sense that no single switch of it can be left out; when more than one is left, single switches
//! of the run that is not forced at all are tried in its place.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use waylay_control_protocol::Switching;
use waylay_evidence::render::{self, RenderOptions};
use waylay_evidence::{Symbolizer, ThreadStack};
use waylay_schedule::{Schedule, ThreadId, Turn};

use crate::budget::Budget;
use crate::confirm::stacks_of;
use crate::held::{HoldAt, hold};
use crate::oracle::{Verdict, judge};
use crate::recording::{self, RecordError, StrictRecord};
use crate::server::{Guide, RunError, Server};
use crate::sys::HOLD_THEMSELVES;

const SCHEDULE: &str = "minimized.bin";
/// Choices to go on where a thread would give way by itself (it yields or sleeps), which a schedule does not show.
const MOST_CORRECTIONS: usize = 1000;
/// Runs with one switch that are tried: all there are in a small program, and seconds of work in a large one.
const MOST_SINGLE: u64 = 2000;

/// Switches whose stacks are taken, each in a process of its own.
const MOST_STACKS: usize = 24;

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
    /// They, and the places at which a thread has to go on that would give way by itself.
    pub switches: Vec<ForcedSwitch>,
    /// Runs that were tried.
    pub runs: u64,
    /// Whether nothing more can be left out; otherwise the time was over.
    pub minimal: bool,
    /// The schedule that they lead to.
    #[serde(skip)]
    pub schedule: Schedule,
    /// The switches as they are forced.
    #[serde(skip)]
    pub(crate) turns: Vec<Turn>,
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

impl MinimizeError {
    /// Why no run could be made; otherwise why nothing came of it, in words.
    pub(crate) fn into_run(self) -> Result<RunError, String> {
        match self {
            MinimizeError::Run(error) => Ok(error),
            other => Err(other.to_string()),
        }
    }
}

/// Tries lists of switches.
struct Trial<'a> {
    record: &'a StrictRecord,
    server: &'a mut Server,
    budget: &'a Budget,
    runs: u64,
    /// The schedule of the last list that failed, and of the last one of all.
    schedule: Schedule,
    last: Schedule,
}

impl Trial<'_> {
    fn fails(&mut self, switches: &[Turn]) -> Result<bool, RunError> {
        let settings = self.server.settings(&self.record.conditions, self.record.seed, self.record.index);
        let observed = self.server.run(settings, Guide::Switches(switches))?;
        self.runs += 1;
        self.last = self.server.schedule().unwrap_or_default();
        match judge(&observed, &self.record.expected) {
            Verdict::Failed(failure) if failure.key == self.record.key && observed.reached => {
                self.schedule.clone_from(&self.last);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn is_late(&self) -> bool {
        self.budget.is_spent(self.server)
    }

    /// Switches with which the failure comes back.
    fn of(&mut self, schedule: &Schedule) -> Result<Vec<Turn>, MinimizeError> {
        let mut turns = schedule.turns();
        for _ in 0..MOST_CORRECTIONS {
            if self.fails(&turns)? {
                return Ok(turns);
            }
            match schedule.correction(&self.last) {
                Some(turn) if !turns.contains(&turn) => turns.push(turn),
                _ => break,
            }
        }
        Err(MinimizeError::NotReproduced)
    }
}

/// Reduces a failure for at most `budget`.
pub fn minimize(
    record: &StrictRecord,
    schedule: &Schedule,
    library: &Path,
    budget: Duration,
) -> Result<Minimized, MinimizeError> {
    let mut server = Server::start(&record.program, library, &record.conditions)?;
    minimize_with(record, schedule, library, &mut server, &Budget::new(budget))
}

/// The same with a server that is there.
pub(crate) fn minimize_with(
    record: &StrictRecord,
    schedule: &Schedule,
    library: &Path,
    server: &mut Server,
    budget: &Budget,
) -> Result<Minimized, MinimizeError> {
    let (last, failing) = (Schedule::default(), Schedule::default());
    let mut trial = Trial { record, server, budget, runs: 0, schedule: failing, last };
    let all = trial.of(schedule)?;
    let (mut least, minimal) =
        reduce(all, |turns| Ok(if trial.is_late() { None } else { Some(trial.fails(turns)?) }))
            .map_err(MinimizeError::Run)?;
    if least.len() > 1
        && let Some(single) = single(&mut trial)?
    {
        least = vec![single];
    }
    lead_on(&mut trial, &mut least)?;
    if !trial.fails(&least)? {
        return Err(MinimizeError::NotReproduced);
    }
    let before = schedule.segments().len().saturating_sub(1) as u64;
    let schedule = std::mem::take(&mut trial.schedule);
    // In the order of the run; those that it ended before are of no account.
    let mut forced: Vec<(u64, Turn)> =
        least.iter().filter_map(|&turn| Some((schedule.step_of(turn)?, turn))).collect();
    forced.sort_by_key(|&(step, _)| step);
    let mut names = Symbolizer::default();
    let (mut taken, mut going_on) = (0, BTreeSet::new());
    let switches = forced.iter().map(|&(step, Turn { of, to, .. })| {
        let (ThreadId(from), ThreadId(to)) = (of, to);
        // Of a thread that has to go on in each round of a loop one round tells all.
        let tells = (from != to || going_on.insert(from)) && taken < MOST_STACKS;
        taken += usize::from(tells);
        let (from_stack, to_stack) = match tells {
            true => stacks_at(record, library, &least, step, (from, to), &mut names),
            false => (None, None),
        };
        ForcedSwitch { step, from, to, from_stack, to_stack }
    });
    let switches: Vec<_> = switches.collect();
    Ok(Minimized {
        before,
        after: switches.iter().filter(|switch| switch.from != switch.to).count() as u64,
        switches,
        runs: trial.runs,
        minimal,
        schedule,
        turns: least,
    })
}

/// A switch to a thread that only goes on to wait, as one that joins others does, says less than one to the thread that runs
/// behind it: that one is named where it makes no difference.
fn lead_on(trial: &mut Trial<'_>, turns: &mut [Turn]) -> Result<(), RunError> {
    for place in 0..turns.len() {
        if !trial.fails(turns)? {
            return Ok(());
        }
        let Some(step) = trial.last.step_of(turns[place]) else { continue };
        let mut begin = 0;
        let stints = trial.last.segments().iter().skip_while(|segment| {
            begin += segment.steps;
            begin <= step
        });
        let mut next = stints.map(|segment| (segment.thread, segment.steps)).take(2);
        if let (Some((first, 1)), Some((second, _))) = (next.next(), next.next())
            && first == turns[place].to
            && second != turns[place].of
        {
            turns[place].to = second;
            if trial.is_late() || !trial.fails(turns)? {
                turns[place].to = first;
            }
        }
    }
    Ok(())
}

/// Looks for one switch that is enough: leaving out parts of a list cannot find a switch that is not in it.
fn single(trial: &mut Trial<'_>) -> Result<Option<Turn>, RunError> {
    trial.fails(&[])?;
    let unforced = std::mem::take(&mut trial.last);
    let threads = unforced.threads() as u32;
    let mut made = vec![0_u64; threads as usize];
    let mut left = MOST_SINGLE;
    for of in unforced.iter() {
        made[of.index()] += 1;
        for to in (0..threads).map(ThreadId).filter(|&to| to != of) {
            if left == 0 || trial.is_late() {
                return Ok(None);
            }
            left -= 1;
            let turn = Turn { of, after: made[of.index()], to };
            if trial.fails(&[turn])? {
                return Ok(Some(turn));
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
    switches: &[Turn],
    step: u64,
    (from, to): (u32, u32),
    names: &mut Symbolizer,
) -> (Option<String>, Option<String>) {
    let mut take = || -> Option<(Vec<ThreadStack>, Vec<waylay_evidence::ThreadId>)> {
        let mut region = record.conditions.region().ok()?;
        let mut settings = record.conditions.settings_in(&mut region, record.seed, record.index);
        settings.switching = Switching::Baton as u32;
        settings.max_steps = step;
        settings.hold = u32::from(HOLD_THEMSELVES);
        Guide::Switches(switches).prepare(&mut region, settings).ok()?;
        let held = hold(&record.program, library, &region, record.conditions.patience(), HoldAt::End).ok()?;
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

/// Writes a failure down with its minimised schedule in front and the one that was found beside it.
pub(crate) fn save_shown(
    folder: &Path,
    record: &mut StrictRecord,
    minimized: &Minimized,
    found: &Schedule,
) -> Result<(), RecordError> {
    let schedule = &minimized.schedule;
    record.steps = schedule.steps();
    record.switches = schedule.segments().len().saturating_sub(1) as u64;
    record.threads = record.threads.max(schedule.threads() as u32);
    recording::save_found(folder, found)?;
    save(folder, minimized)?;
    recording::save(folder, record, schedule)
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
