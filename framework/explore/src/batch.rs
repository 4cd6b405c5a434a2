//! Making the runs of a batch: which worker makes which run, and what each brings back.
//!
//! Worker j of J takes every J-th run, each with processes of its own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use waylay_control_protocol::Ending;
use waylay_driver::failure::Kind;
use waylay_schedule::{Outcome, Schedule};

use crate::explorer::{Plan, State};
use crate::learner::{Lesson, Planned};
use crate::observed::{Observed, to_schedule};
use crate::oracle::{Failure, Verdict};
use crate::recording::Conditions;
use crate::server::RunError;
use crate::sites::Sites;
use crate::worker::{Made, Wanted, Worker};

/// What a worker brings back from one run.
pub(crate) struct Done {
    pub(crate) observed: Observed,
    pub(crate) failed: Option<(Failure, Option<Schedule>)>,
    pub(crate) lesson: Lesson,
    /// Code that was seen to touch memory in conflict.
    pub(crate) conflicting: Vec<u64>,
}

/// What several workers of a batch share.
pub(crate) struct Shared {
    /// No run beyond this one is wanted any more.
    last: AtomicU64,
    until: Option<Instant>,
    runs: AtomicU64,
    judged: AtomicU64,
    failures: AtomicU64,
    steps: AtomicU64,
}

impl Shared {
    /// Nothing was made yet; nothing is begun after `until`.
    pub(crate) fn new(until: Option<Instant>) -> Shared {
        Shared {
            last: AtomicU64::new(u64::MAX),
            until,
            runs: AtomicU64::new(0),
            judged: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            steps: AtomicU64::new(0),
        }
    }

    /// How far it is.
    pub(crate) fn state(&self, elapsed: Duration) -> State {
        State {
            elapsed,
            runs: self.runs.load(Ordering::Relaxed),
            judged: self.judged.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            steps: self.steps.load(Ordering::Relaxed),
        }
    }

    /// Whether the time is over.
    pub(crate) fn late(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }
}

/// How long a worker goes on before it looks whether more is wanted.
const SLICE: Duration = Duration::from_millis(50);

/// Makes the runs of a batch; those that were not made are missing at the end.
pub(crate) fn run_batch(
    batch: &[Planned],
    workers: &mut [Worker<'_>],
    plan: &Plan,
    how: (&Conditions, &Sites),
    shared: &Shared,
    look: &mut dyn FnMut() -> bool,
) -> Result<Vec<Option<Done>>, RunError> {
    let mut done: Vec<Option<Done>> = batch.iter().map(|_| None).collect();
    if workers.len() == 1 || batch.len() == 1 {
        let runs: Vec<&Planned> = batch.iter().collect();
        for (place, made) in done.iter_mut().zip(work(&runs, &mut workers[0], plan, how, shared, look)?) {
            *place = made;
        }
        return Ok(done);
    }
    let jobs = workers.len();
    std::thread::scope(|scope| {
        let part = |number: usize, worker: &mut Worker<'_>| {
            let mine: Vec<&Planned> = batch.iter().skip(number).step_by(jobs).collect();
            work(&mine, worker, plan, how, shared, &mut || true)
        };
        let parts: Vec<_> = workers
            .iter_mut()
            .enumerate()
            .map(|(number, worker)| scope.spawn(move || part(number, worker)))
            .collect();
        while parts.iter().any(|part| !part.is_finished()) {
            if !look() {
                shared.last.store(0, Ordering::Relaxed);
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        for (number, part) in parts.into_iter().enumerate() {
            let results = part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            for (place, made) in done.iter_mut().skip(number).step_by(jobs).zip(results) {
                *place = made;
            }
        }
        Ok(done)
    })
}

/// One worker's runs, in slices.
fn work(
    runs: &[&Planned],
    worker: &mut Worker<'_>,
    plan: &Plan,
    (conditions, sites): (&Conditions, &Sites),
    shared: &Shared,
    look: &mut dyn FnMut() -> bool,
) -> Result<Vec<Option<Done>>, RunError> {
    let mut done = Vec::with_capacity(runs.len());
    let mut size = 1;
    while done.len() < runs.len() && look() {
        let wanted = |planned: &&&Planned| {
            let late = shared.late() && planned.run.index > 0;
            !late && planned.run.index <= shared.last.load(Ordering::Relaxed)
        };
        size = if worker.is_restoring() { size } else { 1 };
        let slice: Vec<&&Planned> = runs[done.len()..].iter().take(size).take_while(wanted).collect();
        let Some(first) = slice.first() else { break };
        let begun = Instant::now();
        let settings = worker.settings(conditions, first.run.index);
        let orders: Vec<Wanted<'_>> = slice
            .iter()
            .map(|planned| {
                let mut settings = settings;
                settings.run = planned.run.index;
                settings.set_profile(sites.looks_at(planned.run.index), planned.handed);
                settings.listen = u32::from(planned.listen || plan.stop_after_quiet.is_some());
                Wanted { settings, parameters: &planned.parameters }
            })
            .collect();
        let made = worker.make(&orders, &mut |index, made| {
            done.push(Some(judged(slice[index], made, plan, shared)));
        });
        match made {
            // What was made before counts.
            Err(RunError::Interrupted) => break,
            other => other?,
        }
        if begun.elapsed() < SLICE / 2 {
            size = (size * 4).min(512);
        } else if begun.elapsed() > SLICE {
            size = (size / 2).max(1);
        }
    }
    Ok(done)
}

fn judged(planned: &Planned, made: Made, plan: &Plan, shared: &Shared) -> Done {
    let Made { observed, verdict, schedule, conversation, conflicting } = made;
    let counts = plan.counts(planned);
    shared.runs.fetch_add(u64::from(counts), Ordering::Relaxed);
    shared.steps.fetch_add(observed.steps, Ordering::Relaxed);
    let failed = match verdict {
        Verdict::Passed | Verdict::Unfinished => None,
        Verdict::Failed(failure) => {
            shared.failures.fetch_add(u64::from(counts), Ordering::Relaxed);
            // Whether a race is one is not known yet.
            if counts && plan.stop_on_first && failure.kind != Kind::Race {
                shared.last.fetch_min(planned.run.index, Ordering::Relaxed);
            }
            Some((failure, schedule.as_deref().and_then(to_schedule)))
        }
    };
    let is_judged = failed.is_some() || !observed.is_cut_off();
    shared.judged.fetch_add(u64::from(counts && is_judged), Ordering::Relaxed);
    let outcome = match (&failed, observed.ending) {
        _ if observed.hung.is_some() => Outcome::Cut,
        (_, Ending::StepLimit | Ending::Livelock | Ending::Awaiting) => Outcome::Cut,
        (Some(_), _) => Outcome::Failed,
        (None, _) => Outcome::Passed,
    };
    let lesson = Lesson { outcome, steps: observed.steps, conversation, news: false };
    Done { observed, failed, lesson, conflicting }
}
