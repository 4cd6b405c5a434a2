//! What one host of a scenario runs, and what its workers are doing.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use waylay_dist::Seed;
use waylay_host::plan::{SchedulePlan, TestPlan};
use waylay_page::{Clock, Layout, ObjectNumber, Ticks, WorkerSlot, WorkerState};

use crate::failure::{RunningView, WorkerView};
use crate::host::Limits;

/// What one host of a scenario runs: which slot belongs to which test and worker.
pub(crate) struct Assignment {
    pub(crate) plugins: Vec<PathBuf>,
    pub(crate) plans: Vec<TestPlan>,
    pub(crate) limits: Vec<Limits>,
    /// Index into the scenario's tests, by the host's test index.
    pub(crate) tests: Vec<usize>,
    /// (host test index, worker number), by slot.
    pub(crate) slots: Vec<(usize, u32)>,
    /// Names of the kinds of shared objects, as the host announced them.
    pub(crate) kinds: Vec<String>,
}

/// A test's part of one schedule: what earlier ones took is none of it.
fn of_one_schedule(plan: &TestPlan, run: u64) -> TestPlan {
    let mut plan = plan.clone();
    for worker in &mut plan.workers {
        (worker.first_iteration, worker.iterations) = (run, Some(1));
    }
    if let Some(contained) = &mut plan.contained {
        (contained.average_ns, contained.given_ns, contained.first_iteration) = (0.0, 0.0, 0);
    }
    plan
}

impl Assignment {
    /// One schedule of it, in strict mode.
    pub(crate) fn schedule(&self, seed: Seed, run: u64) -> SchedulePlan {
        SchedulePlan {
            plugins: self.plugins.clone(),
            tests: self.plans.iter().map(|plan| of_one_schedule(plan, run)).collect(),
            seed,
            run,
        }
    }

    /// The iteration that a worker is in. In a replay the page goes on counting while one is run again and again.
    pub(crate) fn iteration(&self, slot: usize, layout: &Layout) -> u64 {
        let plan = self.slots.get(slot).and_then(|(test, worker)| {
            self.plans[*test].workers.get(*worker as usize).filter(|plan| plan.repeat)
        });
        plan.map_or_else(
            || layout.workers[slot].iteration.load(Ordering::Relaxed),
            |plan| plan.first_iteration,
        )
    }

    /// The place of a plugin among those that the host loads.
    pub(crate) fn plugin(&mut self, file: &Path) -> usize {
        self.plugins.iter().position(|known| known == file).unwrap_or_else(|| {
            self.plugins.push(file.to_owned());
            self.plugins.len() - 1
        })
    }

    /// Tests that run inside others, by the host's index.
    pub(crate) fn contained(&self) -> impl Iterator<Item = usize> {
        (0..self.plans.len()).filter(|test| self.plans[*test].contained.is_some())
    }

    /// The test of the scenario that a test belongs to: itself, or the outermost that contains it.
    pub(crate) fn outermost(&self, test: usize) -> usize {
        match &self.plans[test].contained {
            Some(inside) => self.outermost(inside.container),
            None => test,
        }
    }

    /// What every worker is doing.
    pub(crate) fn views(&self, layout: &Layout, clock: &Clock) -> Vec<WorkerView> {
        let now = clock.now();
        let view = |(slot, (test, worker)): (usize, &(usize, u32))| {
            let words = &layout.workers[slot];
            let state = WorkerState::load(&words.state);
            let entered = Ticks(words.entered_at.load(Ordering::Relaxed));
            WorkerView {
                test: self.plans[*test].name.clone(),
                worker: *worker,
                tid: words.tid.load(Ordering::Relaxed),
                state: format!("{state:?}").to_lowercase(),
                iteration: self.iteration(slot, layout),
                for_ms: clock.duration(now.since(entered)).as_millis() as u64,
                running: self.running(words),
                holds: self.holds(words),
            }
        };
        self.slots.iter().enumerate().map(view).collect()
    }

    fn running(&self, words: &WorkerSlot) -> Option<RunningView> {
        let (test, iteration, over) = words.contained()?;
        let plan = self.plans.get(test as usize).filter(|plan| plan.contained.is_some())?;
        let plugin = self.plugins[plan.plugin].clone();
        Some(RunningView { test: plan.name.clone(), plugin, iteration, over })
    }

    fn holds(&self, words: &WorkerSlot) -> Vec<String> {
        let name = |object: ObjectNumber| {
            let kind = self.kinds.get(usize::from(object.kind)).map_or("object", String::as_str);
            format!("{kind}#{}", object.number)
        };
        let held =
            words.objects.iter().filter_map(|word| ObjectNumber::from_word(word.load(Ordering::Relaxed)));
        held.map(name).collect()
    }
}
