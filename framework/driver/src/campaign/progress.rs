//! A scenario while it runs: which tests are still in, where each stopped, what the next host is to run.

use std::path::Path;
use std::sync::atomic::Ordering;

use waylay_dist::Seed;
use waylay_host::plan::{CombinerPlan, ContainedPlan, HooksPlan, TestPlan, WorkerPlan};
use waylay_page::{Clock, Layout, WorkerState};

use super::assignment::Assignment;
use super::combination::Combination;
use super::disturbance::Disturbance;
use super::explaining::Explaining;
use super::scenario::{Scenario, ScenarioTest};
use super::strict::StrictTest;
use super::totals::Totals;
use crate::host::Limits;

/// One test and how far it is.
pub(crate) struct TestProgress {
    pub(crate) test: ScenarioTest,
    /// Number of the next iteration, by worker.
    next: Vec<u64>,
    /// Number of the next iteration of a contained test, whichever worker runs it.
    next_contained: u64,
    /// Workers that have nothing more to do.
    finished: Vec<bool>,
    /// Of hosts that are gone.
    past: Totals,
    pub(crate) failures: u64,
    pub(crate) retired: Option<String>,
    /// Of a contained test that was retired: the part of its pot's time that it had got until then.
    pub(crate) share_until_retired: Option<f64>,
    pub(crate) strict: Option<StrictTest>,
}

/// The tests of a scenario and their progress.
pub(crate) struct Progress {
    pub(crate) name: String,
    /// One of the scenario's tests runs again, without the others.
    pub(crate) alone: bool,
    /// The randomizers, if the scenario asks for them.
    pub(crate) disturbance: Option<Disturbance>,
    /// Strict tests run one after the other: the one whose turn it is.
    pub(crate) turn: Option<usize>,
    /// What is left for explaining failures of strict tests.
    pub(crate) explaining: Explaining,
    pub(crate) tests: Vec<TestProgress>,
    /// Nanoseconds of one tick.
    tick_ns: f64,
}

/// The plugins whose code a test runs: its own, and those of what it contains.
fn plugins_of(tests: &[ScenarioTest], index: usize) -> Vec<&Path> {
    let within = |test: &ScenarioTest| {
        let mut test = test;
        while let Some(inside) = test.inside {
            if inside.container == index {
                return true;
            }
            test = &tests[inside.container];
        }
        false
    };
    let mut plugins = vec![tests[index].plugin.as_path()];
    for test in tests.iter().filter(|test| within(test)) {
        if !plugins.contains(&test.plugin.as_path()) {
            plugins.push(&test.plugin);
        }
    }
    plugins
}

impl TestProgress {
    fn new(test: ScenarioTest, strict: Option<StrictTest>) -> TestProgress {
        let next = match &test.repeat {
            Some(iterations) => (0..test.workers as usize)
                .map(|worker| iterations.get(worker).or(iterations.first()).copied().unwrap_or(0))
                .collect(),
            None => vec![0; test.workers as usize],
        };
        let finished = vec![false; test.workers as usize];
        let past = Totals::default();
        TestProgress {
            test,
            next,
            next_contained: 0,
            finished,
            past,
            failures: 0,
            retired: None,
            share_until_retired: None,
            strict,
        }
    }

    /// Iterations that are left, or none when there is no limit.
    fn left(&self) -> Option<u64> {
        // Schedules are numbered from 0, and one that failed was run, too.
        let done = if self.strict.is_some() { self.next[0] } else { self.past.iterations };
        self.test.iterations.map(|limit| limit.saturating_sub(done))
    }

    pub(crate) fn active(&self) -> bool {
        let at_work = self.test.inside.is_some() || !self.finished.iter().all(|finished| *finished);
        let exhausted = self.strict.as_ref().is_some_and(|strict| strict.exhausted);
        self.retired.is_none() && self.left() != Some(0) && at_work && !exhausted
    }

    /// What a contained test is told.
    fn contained(&self, container: usize, tick_ns: f64) -> Option<ContainedPlan> {
        let average_ns = match self.past.iterations {
            0 => self.test.known_average_ns,
            runs => self.past.busy_ticks as f64 * tick_ns / runs as f64,
        };
        Some(ContainedPlan {
            container,
            share: self.test.inside?.share,
            average_ns,
            given_ns: self.past.busy_ticks as f64 * tick_ns,
            first_iteration: self.next_contained,
        })
    }

    fn plan(&self, plugin: usize, first_slot: usize) -> TestPlan {
        let at_work = self.finished.iter().filter(|finished| !**finished).count() as u64;
        let mut place = 0..at_work;
        let mut share = |finished: bool| match (finished, self.left()) {
            // All workers take part in every schedule.
            (_, left) if self.strict.is_some() => left,
            (true, _) => Some(0),
            (false, None) => None,
            // The remainder goes to the first workers, so that the sum is exact.
            (false, Some(left)) => {
                Some(left / at_work + u64::from(place.next().is_some_and(|place| place < left % at_work)))
            }
        };
        let workers = (0..u64::from(self.test.workers))
            .map(|worker| WorkerPlan {
                slot: first_slot + worker as usize,
                first_iteration: self.next[worker as usize],
                iterations: share(self.finished[worker as usize]),
                repeat: self.test.repeat.is_some(),
            })
            .collect();
        TestPlan {
            plugin,
            name: self.test.name.clone(),
            params: self.test.params.clone(),
            workers,
            contained: None,
            combiner: None,
        }
    }
}

impl Progress {
    pub(crate) fn new(scenario: Scenario, seed: Seed) -> Progress {
        // What is contained runs in the schedules of its container.
        let strict_test = |(index, test): (usize, &ScenarioTest)| {
            let strict = scenario.strict.clone().filter(|_| test.inside.is_none())?;
            Some(StrictTest::new(strict, &test.name, &plugins_of(&scenario.tests, index), seed))
        };
        let strict: Vec<_> = scenario.tests.iter().enumerate().map(strict_test).collect();
        Progress {
            name: scenario.name,
            alone: false,
            disturbance: scenario.randomizer.map(Disturbance::new),
            turn: None,
            explaining: Explaining::default(),
            tests: scenario
                .tests
                .into_iter()
                .zip(strict)
                .map(|(test, strict)| TestProgress::new(test, strict))
                .collect(),
            tick_ns: 1.0,
        }
    }

    /// Tells the scenario how long a tick is.
    pub(crate) fn with_clock(mut self, clock: &Clock) -> Progress {
        self.tick_ns = clock.nanos(1.0);
        self
    }

    /// A scenario that runs that test alone from its beginning: out of its pot, if it is in one.
    pub(crate) fn alone(&self, test: &TestProgress) -> Progress {
        let workers = match test.test.inside {
            Some(inside) => self.tests[inside.container].test.workers.max(1),
            None => test.test.workers,
        };
        let test = ScenarioTest { inside: None, workers, ..test.test.clone() };
        Progress {
            name: self.name.clone(),
            alone: true,
            disturbance: self.disturbance.as_ref().map(Disturbance::anew),
            turn: None,
            explaining: Explaining::default(),
            tests: vec![TestProgress::new(test, None)],
            tick_ns: self.tick_ns,
        }
    }

    /// The word for how it is disturbed.
    pub(crate) fn mode(&self) -> &'static str {
        match &self.disturbance {
            _ if self.is_strict() => "strict",
            Some(_) => "randomized",
            None => "free",
        }
    }

    /// Whether its tests run schedule after schedule.
    pub(crate) fn is_strict(&self) -> bool {
        self.tests.iter().any(|test| test.strict.is_some())
    }

    /// The strict test whose turn it is has no further one.
    pub(crate) fn retire(&mut self, why: &str) {
        if let Some(test) = self.turn.and_then(|turn| self.tests.get_mut(turn)) {
            test.retired.get_or_insert_with(|| why.to_owned());
        }
    }

    /// The strict tests of which nothing is known, each with the reason.
    pub(crate) fn unjudged(&self) -> Vec<String> {
        let reason = |test: &TestProgress| {
            let nothing = test.strict.as_ref()?.came_to_nothing()?;
            Some(format!("scenario {}: test {}: {nothing}", self.name, test.test.name))
        };
        self.tests.iter().filter_map(reason).collect()
    }

    /// The strict test whose turn it is.
    pub(crate) fn current_strict(&mut self) -> Option<&mut StrictTest> {
        self.tests.get_mut(self.turn?)?.strict.as_mut()
    }

    /// Iterations so far, or schedules including those that failed: what grows when something is achieved.
    pub(crate) fn reached(&self) -> u64 {
        match self.is_strict() {
            true => self.tests.iter().filter(|test| test.strict.is_some()).map(|test| test.next[0]).sum(),
            false => self.tests.iter().map(|test| test.past.iterations).sum(),
        }
    }

    /// In words: threads were to be suspended and none was, although the tests ran.
    pub(crate) fn lacks_randomization(&self) -> Option<String> {
        let disturbance = self.disturbance.as_ref().filter(|_| !self.alone)?;
        let ran = self.totals(None).iter().any(|totals| totals.iterations > 0);
        (ran && disturbance.suspensions() == 0).then(|| {
            let (name, why) = (&self.name, disturbance.why_nothing());
            format!("scenario {name}: asked for randomization, but no thread was suspended: {why}")
        })
    }

    pub(crate) fn any_active(&self) -> bool {
        (0..self.tests.len()).any(|test| self.runs(test))
    }

    /// Whether a test runs in the next host: a contained one with its container, a container with what it contains.
    fn runs(&self, test: usize) -> bool {
        let progress = &self.tests[test];
        let container_runs = progress.test.inside.is_none_or(|inside| {
            self.tests[inside.container].active()
                && self.tests[inside.container].test.inside.is_none_or(|_| self.runs(inside.container))
        });
        let has_content = progress.test.combination.is_none()
            || self.tests.iter().any(|other| {
                other.active() && other.test.inside.is_some_and(|inside| inside.container == test)
            });
        let has_turn = self.turn.is_none_or(|turn| turn == self.outermost(test));
        progress.active() && container_runs && has_content && has_turn
    }

    /// The test of the scenario that a test belongs to: itself, or the outermost that contains it.
    fn outermost(&self, test: usize) -> usize {
        self.tests[test].test.inside.map_or(test, |inside| self.outermost(inside.container))
    }

    /// What the next host is to run.
    pub(crate) fn assign(&self) -> Assignment {
        let mut made = Assignment {
            plugins: Vec::new(),
            plans: Vec::new(),
            limits: Vec::new(),
            tests: Vec::new(),
            slots: Vec::new(),
            kinds: Vec::new(),
        };
        for (index, progress) in self.tests.iter().enumerate().filter(|(index, _)| self.runs(*index)) {
            let test = &progress.test;
            let plugin = made.plugin(&test.plugin);
            let mut plan = progress.plan(plugin, made.slots.len());
            if let Some(inside) = test.inside {
                let container = made.tests.iter().position(|known| *known == inside.container);
                plan.contained = container.and_then(|container| progress.contained(container, self.tick_ns));
            }
            if let Some(combination) = &test.combination {
                plan.combiner = Some(self.combiner(index, combination, &mut made));
            }
            made.plans.push(plan);
            made.limits.push(self.limits(index));
            let host_test = made.tests.len();
            made.slots.extend((0..test.workers).map(|worker| (host_test, worker)));
            made.tests.push(index);
        }
        made
    }

    fn combiner(&self, pot: usize, combination: &Combination, made: &mut Assignment) -> CombinerPlan {
        for provider in &combination.providers {
            made.plugin(provider);
        }
        let contained: Vec<&ScenarioTest> = (0..self.tests.len())
            .filter(|test| self.tests[*test].test.inside.is_some_and(|inside| inside.container == pot))
            .filter(|test| self.runs(*test))
            .map(|test| &self.tests[test].test)
            .collect();
        CombinerPlan {
            settings: combination.settings_text(self.is_strict(), |plugin, name| {
                contained.iter().position(|test| test.plugin == plugin && test.name == name)
            }),
            pools: combination.pools.clone(),
            hooks: combination
                .hooks
                .iter()
                .map(|(plugin, name)| HooksPlan { plugin: made.plugin(plugin), name: name.clone() })
                .collect(),
        }
    }

    /// How long the parts of a test may take. A test that contains others does for each what these may take.
    fn limits(&self, test: usize) -> Limits {
        let own = &self.tests[test].test;
        let mut limits =
            Limits { hang: own.hang_timeout, start: own.start_timeout, cancel: own.cancel_timeout };
        for (inside, other) in self.tests.iter().enumerate() {
            if other.test.inside.is_some_and(|inside| inside.container == test) {
                let contained = self.limits(inside);
                limits.hang = limits.hang.max(contained.hang);
                limits.start += contained.start;
                limits.cancel += contained.cancel;
            }
        }
        limits
    }

    /// Takes over what a host counted, when the host is gone.
    pub(crate) fn account(&mut self, assignment: &Assignment, layout: &Layout) {
        for host_test in assignment.contained() {
            let progress = &mut self.tests[assignment.tests[host_test]];
            progress.past.add(Totals::of_contained(layout, host_test));
            let next = layout.tests[host_test].next_iteration.load(Ordering::Relaxed);
            // Iterations that were running when the host died are not run again.
            let running = assignment.slots.len() as u64;
            progress.next_contained = progress.next_contained.max(next + running);
        }
        for (slot, (host_test, worker)) in assignment.slots.iter().enumerate() {
            let progress = &mut self.tests[assignment.tests[*host_test]];
            let words = &layout.workers[slot];
            progress.past.add(Totals::of_worker(layout, slot));
            progress.finished[*worker as usize] |= WorkerState::load(&words.state) == WorkerState::Finished;
            if WorkerState::load(&words.state) != WorkerState::Idle && progress.test.repeat.is_none() {
                // The iteration that was running when the host died is not run again.
                progress.next[*worker as usize] = words.iteration.load(Ordering::Relaxed) + 1;
            }
        }
    }

    /// The numbers of all tests, with those of the running host.
    pub(crate) fn totals(&self, running: Option<(&Assignment, &Layout)>) -> Vec<Totals> {
        let mut all: Vec<Totals> = self.tests.iter().map(|progress| progress.past).collect();
        if let Some((assignment, layout)) = running {
            for (slot, (host_test, _)) in assignment.slots.iter().enumerate() {
                all[assignment.tests[*host_test]].add(Totals::of_worker(layout, slot));
            }
            for host_test in assignment.contained() {
                all[assignment.tests[host_test]].add(Totals::of_contained(layout, host_test));
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;
    use waylay_page::Page;

    fn test(name: &str, workers: u32, iterations: Option<u64>) -> ScenarioTest {
        ScenarioTest {
            plugin: format!("lib{name}.so").into(),
            name: name.to_owned(),
            workers,
            hang_timeout: Duration::from_secs(1),
            start_timeout: Duration::from_secs(1),
            cancel_timeout: Duration::from_secs(1),
            iterations,
            max_failures: 0,
            leaks: true,
            params: BTreeMap::new(),
            repeat: None,
            inside: None,
            combination: None,
            known_average_ns: 0.0,
        }
    }

    fn progress(tests: Vec<ScenarioTest>) -> Progress {
        let scenario = Scenario {
            name: "s".into(),
            duration: None,
            randomizer: None,
            strict: None,
            dump: waylay_evidence::DumpSize::Mini,
            tests,
        };
        Progress::new(scenario, Seed::new(1))
    }

    #[test]
    fn iterations_are_split_exactly_and_slots_do_not_overlap() {
        let assignment = progress(vec![test("a", 3, Some(10)), test("b", 2, None)]).assign();
        let counts: Vec<Option<u64>> = assignment.plans[0].workers.iter().map(|w| w.iterations).collect();
        assert_eq!(counts, [Some(4), Some(3), Some(3)]);
        let slots: Vec<usize> =
            assignment.plans.iter().flat_map(|p| p.workers.iter().map(|w| w.slot)).collect();
        assert_eq!(slots, [0, 1, 2, 3, 4]);
        assert_eq!(assignment.slots, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]);
    }

    #[test]
    fn after_a_restart_no_iteration_is_run_twice_and_the_count_goes_on() {
        let mut progress = progress(vec![test("a", 1, Some(10))]);
        let page = Page::create(&Clock::calibrate()).unwrap();
        let assignment = progress.assign();
        let slot = &page.layout().workers[0];
        WorkerState::Running.store(&slot.state);
        slot.iteration.store(4, Ordering::SeqCst);
        slot.finished.store(4, Ordering::SeqCst);
        progress.account(&assignment, page.layout());
        let next = progress.assign();
        assert_eq!(next.plans[0].workers[0].first_iteration, 5);
        assert_eq!(next.plans[0].workers[0].iterations, Some(6));
    }

    #[test]
    fn a_worker_that_has_nothing_more_to_do_is_not_called_again() {
        let mut progress = progress(vec![test("a", 2, Some(11))]);
        let page = Page::create(&Clock::calibrate()).unwrap();
        let assignment = progress.assign();
        let slots = &page.layout().workers;
        WorkerState::Finished.store(&slots[0].state);
        slots[0].finished.store(2, Ordering::SeqCst);
        WorkerState::Done.store(&slots[1].state);
        slots[1].finished.store(5, Ordering::SeqCst);
        progress.account(&assignment, page.layout());
        let counts: Vec<Option<u64>> =
            progress.assign().plans[0].workers.iter().map(|w| w.iterations).collect();
        assert_eq!(counts, [Some(0), Some(4)]);
        WorkerState::Finished.store(&slots[1].state);
        progress.account(&assignment, page.layout());
        assert!(!progress.any_active());
    }

    #[test]
    fn a_retired_or_finished_test_is_not_assigned() {
        let mut progress = progress(vec![test("a", 1, None), test("b", 1, Some(0)), test("c", 1, None)]);
        progress.tests[0].retired = Some("failed too often".into());
        assert_eq!(progress.assign().tests, [2]);
    }
}
