//! Where something went wrong: the host, its page and its tests, as a finding needs to see them.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::Timestamp;
use waylay_dist::Seed;
use waylay_evidence::{ProcessId, ThreadId};
use waylay_page::record::Received;
use waylay_page::{Clock, Layout, Ticks, WorkerState};

use super::assignment::Assignment;
use super::progress::Progress;
use super::session::Session;
use crate::failure::{Occurrence, PotView, RandomizerTrace};
use crate::host::HostLog;

/// In a pot, an iteration that takes this long may belong to a hang of another test.
const STANDS: Duration = Duration::from_millis(250);

/// Where something went wrong.
pub(crate) struct Scene<'a> {
    pub(super) pid: u32,
    pub(super) layout: &'a Layout,
    pub(super) assignment: &'a Assignment,
    pub(super) progress: &'a Progress,
    pub(super) clock: Clock,
    pub(super) log: &'a HostLog,
    pub(super) randomizer: Option<RandomizerTrace>,
}

impl<'a> Scene<'a> {
    pub(crate) fn of(
        session: &'a Session,
        progress: &'a Progress,
        clock: Clock,
        log: &'a HostLog,
    ) -> Scene<'a> {
        Scene {
            pid: session.host.pid(),
            layout: session.shown(),
            assignment: &session.assignment,
            progress,
            clock,
            log,
            randomizer: session.randomizer.as_ref().map(|randomizer| randomizer.trace()),
        }
    }

    pub(super) fn process(&self) -> ProcessId {
        ProcessId(self.pid)
    }

    pub(super) fn test_name(&self, test: Option<usize>) -> Option<String> {
        Some(self.assignment.plans.get(test?)?.name.clone())
    }

    pub(super) fn plugin(&self, test: Option<usize>) -> Option<PathBuf> {
        Some(self.assignment.plugins[self.assignment.plans.get(test?)?.plugin].clone())
    }

    pub(super) fn occurrence(
        &self,
        test: Option<usize>,
        worker: Option<u32>,
        iteration: u64,
        seed: Seed,
    ) -> Occurrence {
        Occurrence {
            pot: test.and_then(|test| self.pot(test)),
            at: Timestamp::now(),
            scenario: self.progress.name.clone(),
            worker,
            iteration,
            seed,
            pid: self.pid,
            randomizer: self.randomizer,
            workers: self.assignment.views(self.layout, &self.clock),
        }
    }

    /// The pot that a test is in, with the numbers of all tests in it.
    pub(super) fn pot(&self, test: usize) -> Option<PotView> {
        self.assignment.plans.get(test)?.contained.as_ref()?;
        let outermost = self.assignment.outermost(test);
        let running = Some((self.assignment, self.layout));
        let record = self.progress.record(Duration::ZERO, &self.clock, running, None);
        Some(PotView {
            test: self.test_name(Some(outermost))?,
            plugin: self.plugin(Some(outermost))?,
            tests: record.tests.into_iter().filter(|test| test.pot.is_some()).collect(),
        })
    }

    /// The test that runs on a worker, contained or not, and the number of its iteration.
    pub(super) fn iteration_of_slot(&self, slot: usize) -> (usize, u64) {
        let (test, iteration) = self.layout.workers[slot].running();
        let contained = self.assignment.plans.get(test as usize).is_some_and(|plan| plan.contained.is_some());
        (test as usize, if contained { iteration } else { self.assignment.iteration(slot, self.layout) })
    }

    /// What happened to a worker slot, as the page shows it.
    pub(super) fn occurrence_of_slot(
        &self,
        test: Option<usize>,
        slot: Option<usize>,
        seed: Seed,
    ) -> Occurrence {
        let worker = slot.and_then(|slot| self.assignment.slots.get(slot)).map(|(_, worker)| *worker);
        let iteration = slot.map_or(0, |slot| self.iteration_of_slot(slot).1);
        self.occurrence(test, worker, iteration, seed)
    }

    pub(super) fn of_received(&self, received: &Received) -> Occurrence {
        let slot = received.worker.map(|slot| slot as usize);
        let worker = slot.and_then(|slot| self.assignment.slots.get(slot)).map(|(_, worker)| *worker);
        let test = self.test_of_received(received);
        self.occurrence(test, worker, received.iteration, Seed::new(received.seed))
    }

    pub(super) fn test_of_received(&self, received: &Received) -> Option<usize> {
        received.test.map(|test| test as usize).filter(|test| *test < self.assignment.plans.len())
    }

    /// Threads of a test, by their kernel number. Tests of one pot share its threads, and those that have been in an
    /// iteration for a while may wait for each other; the rest get on.
    pub(super) fn workers_of(&self, test: usize) -> Vec<ThreadId> {
        let owner = self.assignment.outermost(test);
        let now = self.clock.now();
        let stands = |slot: usize| {
            let words = &self.layout.workers[slot];
            let since = now.since(Ticks(words.entered_at.load(Ordering::Relaxed)));
            self.assignment.plans[test].contained.is_none()
                || WorkerState::load(&words.state) == WorkerState::Running
                    && self.clock.duration(since) > STANDS
        };
        let slots = self.assignment.slots.iter().enumerate();
        let mine = slots.filter(|(slot, (other, _))| *other == owner && stands(*slot));
        mine.map(|(slot, _)| ThreadId(self.layout.workers[slot].tid.load(Ordering::Relaxed))).collect()
    }

    pub(super) fn is_pot_worker(&self, thread: &ThreadId) -> bool {
        let of_pot =
            |(_, (owner, _)): &(usize, &(usize, u32))| self.assignment.plans[*owner].combiner.is_some();
        let slots = self.assignment.slots.iter().enumerate().filter(of_pot);
        slots.into_iter().any(|(slot, _)| self.layout.workers[slot].tid.load(Ordering::Relaxed) == thread.0)
    }

    pub(super) fn finished_by_test(&self, test: usize) -> u64 {
        if self.assignment.plans[test].contained.is_some() {
            return self.layout.tests[test].runs.load(Ordering::Relaxed);
        }
        let mine = self.assignment.slots.iter().enumerate().filter(|(_, (owner, _))| *owner == test);
        let finished = |slot: usize| self.layout.workers[slot].finished.load(Ordering::Relaxed);
        mine.fold(0, |sum: u64, (slot, _)| sum.saturating_add(finished(slot)))
    }

    pub(super) fn seed_of_slot(&self, slot: usize, seed: Seed) -> Seed {
        let Some((_, worker)) = self.assignment.slots.get(slot) else { return seed };
        let (test, iteration) = self.iteration_of_slot(slot);
        let Some(plan) = self.assignment.plans.get(test) else { return seed };
        // A contained test draws the same whichever worker runs it.
        let stream = if plan.contained.is_some() { 0 } else { *worker };
        let mut rng = seed.worker(&plan.name, stream);
        rng.begin(iteration);
        rng.iteration_seed()
    }
}
