//! One scenario while it runs: which tests are still in, where each stopped, what was counted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use waylay_dist::{Seed, Spec};
use waylay_host::plan::{CombinerPlan, ContainedPlan, HooksPlan, TestPlan, WorkerPlan};
use waylay_page::{Clock, Layout, ObjectNumber, Ticks, WorkerSlot, WorkerState};

use super::combination::Combination;
use super::disturbance::{Disturbance, Randomization};
use super::strict::StrictTest;
use crate::config::Strict;
use crate::failure::{RunningView, WorkerView};
use crate::host::Limits;
use crate::randomizer::Tally;
use crate::store::{PotShare, ScenarioRecord, TestRecord};
use crate::sys::ControlRegion;

/// A scenario with every pattern expanded and every file found.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// How long it runs; none means until all tests have done their iterations.
    pub duration: Option<Duration>,
    /// How its threads are suspended, if they are.
    pub randomizer: Option<Randomization>,
    /// How its schedules are made, in strict mode.
    pub strict: Option<Strict>,
    /// Its tests.
    pub tests: Vec<ScenarioTest>,
}

/// One test of a scenario.
#[derive(Clone, Debug)]
pub struct ScenarioTest {
    /// The plugin's file.
    pub plugin: PathBuf,
    /// The test's name.
    pub name: String,
    /// Worker threads.
    pub workers: u32,
    /// Longest `TestMain`.
    pub hang_timeout: Duration,
    /// Longest CreateInstance or OnTestStart.
    pub start_timeout: Duration,
    /// Longest OnTestCancelled or OnTestEnd.
    pub cancel_timeout: Duration,
    /// Stop after so many iterations, all workers together.
    pub iterations: Option<u64>,
    /// Retire the test after so many failures; 0 means never.
    pub max_failures: u64,
    /// Watch it for leaks.
    pub leaks: bool,
    /// Distributions that replace the test's defaults.
    pub params: BTreeMap<String, Spec>,
    /// Replay: run these iterations (one per worker) again and again.
    pub repeat: Option<Vec<u64>>,
    /// For a test that another one contains.
    pub inside: Option<Inside>,
    /// For a test that contains others; these follow it.
    pub combination: Option<Box<Combination>>,
    /// Average duration of an iteration as an earlier campaign measured it; 0 when none did.
    pub known_average_ns: f64,
}

/// Where a contained test is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Inside {
    /// The place of the containing test in the scenario.
    pub container: usize,
    /// Share of the containing test's time.
    pub share: f64,
}

/// Counters of one test over all hosts of the scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Totals {
    pub(crate) iterations: u64,
    pub(crate) busy_ticks: u64,
    /// Of a contained test: the sum of the squares of its iterations' ticks.
    pub(crate) squares: f64,
    /// Of a contained test: the share of the time that it is meant to get.
    pub(crate) asked: f64,
    pub(crate) shortest: Option<u64>,
    pub(crate) longest: u64,
}

impl Totals {
    fn add(&mut self, other: Totals) {
        self.iterations += other.iterations;
        self.busy_ticks += other.busy_ticks;
        self.squares += other.squares;
        self.asked = if other.iterations > 0 || self.iterations == 0 { other.asked } else { self.asked };
        self.shortest = self.shortest.into_iter().chain(other.shortest).min();
        self.longest = self.longest.max(other.longest);
    }
}

/// One test and how far it is.
pub(crate) struct TestProgress {
    pub(crate) test: ScenarioTest,
    /// Number of the next iteration, by worker.
    next: Vec<u64>,
    /// The same of a contained test, whichever worker runs it.
    next_contained: u64,
    /// Workers that have nothing more to do.
    finished: Vec<bool>,
    /// Of hosts that are gone.
    past: Totals,
    pub(crate) failures: u64,
    pub(crate) retired: Option<String>,
    pub(crate) strict: Option<StrictTest>,
}

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

/// The tests of a scenario and their progress.
pub(crate) struct Progress {
    pub(crate) name: String,
    /// One of the scenario's tests runs again, without the others.
    alone: bool,
    /// The randomizers, if the scenario asks for them.
    pub(crate) disturbance: Option<Disturbance>,
    /// Strict tests run one after the other: the one whose turn it is.
    pub(crate) turn: Option<usize>,
    pub(crate) tests: Vec<TestProgress>,
    /// Nanoseconds of one tick.
    tick_ns: f64,
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
        TestProgress { test, next, next_contained: 0, finished, past, failures: 0, retired: None, strict }
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
        let strict = scenario.strict;
        let test = |test: ScenarioTest| {
            let strict = strict.clone().map(|strict| StrictTest::new(strict, &test, seed));
            TestProgress::new(test, strict)
        };
        Progress {
            name: scenario.name,
            alone: false,
            disturbance: scenario.randomizer.map(Disturbance::new),
            turn: None,
            tests: scenario.tests.into_iter().map(test).collect(),
            tick_ns: 1.0,
        }
    }

    /// The same with what a tick is.
    pub(crate) fn with_clock(mut self, clock: &Clock) -> Progress {
        self.tick_ns = clock.nanos(1.0);
        self
    }

    /// The same scenario with that test only, from its beginning: out of its pot, if it is in one.
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
            tests: vec![TestProgress::new(test, None)],
            tick_ns: self.tick_ns,
        }
    }

    /// The word for how it is disturbed.
    fn mode(&self) -> &'static str {
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

    /// The strict test whose turn it is.
    pub(crate) fn current_strict(&mut self) -> Option<&mut StrictTest> {
        self.tests.get_mut(self.turn?)?.strict.as_mut()
    }

    /// Iterations so far, or schedules including those that failed: what grows when something is achieved.
    pub(crate) fn reached(&self) -> u64 {
        match self.is_strict() {
            true => self.tests.iter().map(|test| test.next[0]).sum(),
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
        let has_turn = self.turn.is_none_or(|turn| turn == test);
        progress.active() && container_runs && has_content && has_turn
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
            settings: combination.settings_text(|plugin, name| {
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
            progress.past.add(read_contained(layout, host_test));
            let next = layout.tests[host_test].next_iteration.load(Ordering::Relaxed);
            // Iterations that were running when the host died are not run again.
            let running = assignment.slots.len() as u64;
            progress.next_contained = progress.next_contained.max(next + running);
        }
        for (slot, (host_test, worker)) in assignment.slots.iter().enumerate() {
            let progress = &mut self.tests[assignment.tests[*host_test]];
            let words = &layout.workers[slot];
            progress.past.add(read(layout, slot));
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
                all[assignment.tests[*host_test]].add(read(layout, slot));
            }
            for host_test in assignment.contained() {
                all[assignment.tests[host_test]].add(read_contained(layout, host_test));
            }
        }
        all
    }

    /// The part of a pot's time that a contained test got.
    fn share_of(&self, test: usize, totals: &[Totals], clock: &Clock) -> Option<PotShare> {
        let container = self.tests[test].test.inside?.container;
        let siblings = self
            .tests
            .iter()
            .enumerate()
            .filter(|(_, other)| other.test.inside.is_some_and(|inside| inside.container == container));
        let whole: u64 = siblings.map(|(other, _)| totals[other].busy_ticks).sum();
        let mine = &totals[test];
        let runs = mine.iterations.max(1) as f64;
        let average = mine.busy_ticks as f64 / runs;
        let variance = (mine.squares / runs - average * average).max(0.0);
        Some(PotShare {
            container: self.tests[container].test.name.clone(),
            total_ns: clock.nanos(mine.busy_ticks as f64),
            deviation_ns: clock.nanos(variance.sqrt()),
            asked: mine.asked,
            achieved: mine.busy_ticks as f64 / whole.max(1) as f64,
        })
    }

    /// The scenario's part of `campaign.json`.
    pub(crate) fn record(
        &self,
        elapsed: Duration,
        clock: &Clock,
        running: Option<(&Assignment, &Layout)>,
        region: Option<(&ControlRegion, Duration)>,
    ) -> ScenarioRecord {
        let nanos = |ticks: f64| clock.nanos(ticks);
        let randomizer = self.disturbance.as_ref().map(Disturbance::record);
        let bound_of = |totals: &Totals| {
            let (record, disturbance) = (randomizer.as_ref()?, self.disturbance.as_ref()?);
            let shortest = Duration::from_nanos(nanos(totals.shortest? as f64) as u64);
            Some(Tally::bound(record, disturbance.settings(), shortest, totals.iterations))
        };
        let all = self.totals(running);
        let tests = self.tests.iter().zip(&all).enumerate().map(|(index, (progress, totals))| {
            let region = region.filter(|_| self.turn == Some(index));
            let (running, since) = (region.map(|(region, _)| region), region.map(|(_, since)| since));
            let (bound, no_bound) = match bound_of(totals) {
                Some(Ok(bound)) => (Some(bound), None),
                Some(Err(reason)) => (None, Some(reason)),
                None => (None, None),
            };
            TestRecord {
                name: progress.test.name.clone(),
                plugin: progress.test.plugin.clone(),
                workers: progress.test.workers,
                iterations: totals.iterations,
                failures: progress.failures,
                average_ns: nanos(totals.busy_ticks as f64 / totals.iterations.max(1) as f64),
                shortest_ns: nanos(totals.shortest.unwrap_or(0) as f64),
                longest_ns: nanos(totals.longest as f64),
                retired: progress.retired.clone(),
                bound,
                no_bound,
                pot: self.share_of(index, &all, clock),
                strict: progress
                    .strict
                    .as_ref()
                    .map(|strict| strict.numbers(running, since.unwrap_or_default())),
            }
        });
        let tests = tests.collect();
        let alone = if self.alone { format!(" ({} alone)", self.tests[0].test.name) } else { String::new() };
        ScenarioRecord {
            name: format!("{}{alone}", self.name),
            mode: self.mode().to_owned(),
            seconds: elapsed.as_secs_f64(),
            randomizer,
            tests,
        }
    }
}

impl Assignment {
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
    fn plugin(&mut self, file: &Path) -> usize {
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
}

impl Assignment {
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

fn read_contained(layout: &Layout, test: usize) -> Totals {
    let words = &layout.tests[test];
    let iterations = words.runs.load(Ordering::Relaxed);
    Totals {
        iterations,
        busy_ticks: words.busy.load(Ordering::Relaxed),
        squares: f64::from_bits(words.squares.load(Ordering::Relaxed)),
        asked: f64::from_bits(words.asked.load(Ordering::Relaxed)),
        shortest: (iterations > 0).then(|| !words.shortest_inverted.load(Ordering::Relaxed)),
        longest: words.longest.load(Ordering::Relaxed),
    }
}

fn read(layout: &Layout, slot: usize) -> Totals {
    let words = &layout.workers[slot];
    let iterations = words.finished.load(Ordering::Relaxed);
    Totals {
        iterations,
        busy_ticks: words.busy.load(Ordering::Relaxed),
        squares: 0.0,
        asked: 0.0,
        shortest: (iterations > 0).then(|| words.shortest.load(Ordering::Relaxed)),
        longest: words.longest.load(Ordering::Relaxed),
    }
}

#[cfg(test)]
mod tests {
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
        let scenario = Scenario { name: "s".into(), duration: None, randomizer: None, strict: None, tests };
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
