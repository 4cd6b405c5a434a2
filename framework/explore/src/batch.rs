//! Making the runs of a batch: which worker makes which run, and what each brings back.
//!
//! Worker j of J takes every J-th run, each with a fork server of its own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use waylay_control_protocol::Ending;
use waylay_schedule::{Outcome, Schedule};

use crate::explorer::{Plan, State};
use crate::learner::{Lesson, Planned};
use crate::observed::Observed;
use crate::oracle::{Failure, Verdict, judge};
use crate::recording::Conditions;
use crate::server::{Guide, RunError, Server};
use crate::sites::Sites;

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
            failures: AtomicU64::new(0),
            steps: AtomicU64::new(0),
        }
    }

    /// How far it is.
    pub(crate) fn state(&self, elapsed: Duration) -> State {
        State {
            elapsed,
            runs: self.runs.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            steps: self.steps.load(Ordering::Relaxed),
        }
    }

    /// Whether the time is over.
    pub(crate) fn late(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }
}

/// Makes the runs of a batch; those that were not made are missing at the end.
pub(crate) fn run_batch(
    batch: &[Planned],
    servers: &mut [Server],
    plan: &Plan,
    how: (&Conditions, &Sites),
    shared: &Shared,
    look: &mut dyn FnMut() -> bool,
) -> Result<Vec<Option<Done>>, RunError> {
    let mut done: Vec<Option<Done>> = batch.iter().map(|_| None).collect();
    if servers.len() == 1 || batch.len() == 1 {
        for (planned, place) in batch.iter().zip(&mut done) {
            if !look() {
                break;
            }
            *place = run_one(planned, &mut servers[0], plan, how, shared)?;
        }
        return Ok(done);
    }
    let jobs = servers.len();
    std::thread::scope(|scope| {
        let work = |worker: usize, server: &mut Server| -> Result<Vec<(usize, Option<Done>)>, RunError> {
            let mine = (worker..batch.len()).step_by(jobs);
            mine.map(|index| Ok((index, run_one(&batch[index], server, plan, how, shared)?))).collect()
        };
        let workers: Vec<_> = servers
            .iter_mut()
            .enumerate()
            .map(|(worker, server)| scope.spawn(move || work(worker, server)))
            .collect();
        while workers.iter().any(|worker| !worker.is_finished()) {
            if !look() {
                shared.last.store(0, Ordering::Relaxed);
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        for worker in workers {
            let results = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            for (index, result) in results {
                done[index] = result;
            }
        }
        Ok(done)
    })
}

fn run_one(
    planned: &Planned,
    server: &mut Server,
    plan: &Plan,
    (conditions, sites): (&Conditions, &Sites),
    shared: &Shared,
) -> Result<Option<Done>, RunError> {
    let late = shared.late() && planned.run.index > 0;
    if late || planned.run.index > shared.last.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let mut settings = server.settings(conditions, plan.seed, planned.run.index);
    settings.profile = u32::from(sites.looks_at(planned.run.index));
    settings.listen = u32::from(planned.listen);
    let observed = server.run(settings, Guide::Strategy(&planned.parameters))?;
    shared.runs.fetch_add(1, Ordering::Relaxed);
    shared.steps.fetch_add(observed.steps, Ordering::Relaxed);
    let failed = match judge(&observed, &plan.expected) {
        Verdict::Passed => None,
        Verdict::Failed(failure) => {
            shared.failures.fetch_add(1, Ordering::Relaxed);
            if plan.stop_on_first {
                shared.last.fetch_min(planned.run.index, Ordering::Relaxed);
            }
            Some((failure, server.schedule()))
        }
    };
    let outcome = match (&failed, observed.ending) {
        _ if observed.hung.is_some() => Outcome::Cut,
        (_, Ending::StepLimit) => Outcome::Cut,
        (Some(_), _) => Outcome::Failed,
        (None, _) => Outcome::Passed,
    };
    let conversation = if planned.listen { server.conversation() } else { None };
    let lesson = Lesson { outcome, steps: observed.steps, conversation, news: false };
    let conflicting = server.conflicting();
    Ok(Some(Done { observed, failed, lesson, conflicting }))
}
