//! Runs the trials that are left, several at a time. How a trial is run is the caller's; here it is decided which come
//! next, what is kept, and when to stop.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use waylay_schedule::Shard;

use crate::journal::{Journal, Record};
use crate::plan::{Plan, Trial};

/// Why trials ended before all were run.
#[derive(Debug)]
pub enum Stop {
    /// Somebody wants it to end; what was run is kept.
    Interrupted,
    /// A trial could not be run.
    Failed(String),
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Trials whose outcome is known.
    pub done: usize,
    /// All of them.
    pub all: usize,
    /// Those that were known from before.
    pub before: usize,
}

/// Runs what is left of one part of the trials. `make` gives each of the `jobs` threads a function that runs a trial; `tell` is called after each.
///
/// # Errors
/// When a trial could not be run, or somebody wants it to end; the journal has what was run.
pub fn run<R>(
    plan: &Plan,
    shard: Shard,
    journal: &Mutex<Journal>,
    jobs: usize,
    make: impl Fn(usize) -> Result<R, Stop> + Sync,
    tell: impl Fn(Progress, &Record) + Sync,
) -> Result<(), Stop>
where
    R: FnMut(Trial) -> Result<Record, Stop>,
{
    let trials: Vec<Trial> = plan
        .trials()
        .into_iter()
        .zip(0..)
        .filter(|(_, index)| shard.has(*index))
        .map(|(trial, _)| trial)
        .collect();
    let left: Vec<Trial> = {
        let known = lock(journal);
        trials.iter().copied().filter(|trial| known.get(&plan.key(*trial)).is_none()).collect()
    };
    let before = trials.len() - left.len();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(before));
    let (stopped, why) = (AtomicBool::new(false), Mutex::new(None));
    let stop = |reason: Stop| {
        stopped.store(true, Ordering::Relaxed);
        lock(&why).get_or_insert(reason);
    };
    std::thread::scope(|scope| {
        for job in 0..jobs.clamp(1, left.len().max(1)) {
            let (left, next, done, stopped, stop, make, tell) =
                (&left, &next, &done, &stopped, &stop, &make, &tell);
            scope.spawn(move || {
                let mut run = match make(job) {
                    Ok(run) => run,
                    Err(reason) => return stop(reason),
                };
                while !stopped.load(Ordering::Relaxed) {
                    let Some(trial) = left.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
                    let record = match run(*trial) {
                        Ok(record) => record,
                        Err(reason) => return stop(reason),
                    };
                    if let Err(error) = lock(journal).add(record.clone()) {
                        return stop(Stop::Failed(format!("cannot keep what a trial gave: {error}")));
                    }
                    let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                    tell(Progress { done, all: left.len() + before, before }, &record);
                }
            });
        }
    });
    why.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::tests::record;
    use crate::plan::tests::plan;

    const FOUR: &str = "trials = 2\nstrategies = ['pos']\n[[test]]\nplugin = 'p'\nname = 'a'\n\
        [[test]]\nplugin = 'p'\nname = 'b'\n";

    #[test]
    fn what_was_run_is_not_run_again() {
        let plan = plan(FOUR);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trials.jsonl");
        let runs = AtomicUsize::new(0);
        let make = |most: usize| {
            let (plan, runs) = (&plan, &runs);
            move |_: usize| {
                Ok(move |trial: Trial| {
                    if runs.load(Ordering::Relaxed) >= most {
                        return Err(Stop::Interrupted);
                    }
                    runs.fetch_add(1, Ordering::Relaxed);
                    Ok(record(&plan.key(trial), Some(1)))
                })
            }
        };
        let journal = Mutex::new(Journal::open(&path).unwrap());
        let ended = run(&plan, Shard::WHOLE, &journal, 1, make(3), |_, _| {});
        assert!(matches!(ended, Err(Stop::Interrupted)));
        drop(journal);
        let journal = Mutex::new(Journal::open(&path).unwrap());
        let seen = Mutex::new(Vec::new());
        run(&plan, Shard::WHOLE, &journal, 4, make(100), |progress, _| seen.lock().unwrap().push(progress))
            .unwrap();
        assert_eq!(runs.load(Ordering::Relaxed), 4);
        assert_eq!(*seen.lock().unwrap(), [Progress { done: 4, all: 4, before: 3 }]);
    }

    #[test]
    fn a_trial_that_cannot_be_run_ends_it_with_its_reason() {
        let plan = plan(FOUR);
        let folder = tempfile::tempdir().unwrap();
        let journal = Mutex::new(Journal::open(&folder.path().join("t")).unwrap());
        let make = |_: usize| Ok(|_: Trial| Err::<Record, _>(Stop::Failed("no host".to_owned())));
        let ended = run(&plan, Shard::WHOLE, &journal, 2, make, |_, _| {});
        assert!(matches!(ended, Err(Stop::Failed(reason)) if reason == "no host"));
    }
}
