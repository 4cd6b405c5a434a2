//! Is what a host shows possible? The page is a witness: a test that writes through a wild pointer writes there, too.
//!
//! Each look copies what the host shows into memory of our own, compares the copy with what we wrote ourselves, with what
//! was seen before and with what a processor can do, and only then believes it. What is not possible is a
//! [`Contradiction`]; what was believed before stays, so that counters and evidence are never made of garbage.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use waylay_host::plan::TestPlan;
use waylay_page::{
    Clock, Command, HostPhase, Layout, Page, TestPhase, TestSlot, Ticks, WorkerSlot, WorkerState,
};

/// How far clocks of two processors may be apart, and how long a store may take to be seen: both are far less.
const SLACK: Duration = Duration::from_secs(10);
/// Things that a host may have counted before its first nanosecond is over.
const SLACK_COUNT: u64 = 1_000_000;
/// Iterations of a contained test in strict mode are numbered by schedule, with gaps.
const MOST_NUMBERED: u64 = 1 << 56;
/// A thread that waits for us to look at its failure and shows none does so for an instant only.
const LONGEST_HELD: Duration = Duration::from_secs(20);

/// Something that a host shows and that cannot be: its tests wrote over memory that is not theirs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Contradiction(pub(crate) String);

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a test was told to do, as far as its numbers follow from it.
struct Part {
    /// The test of a worker, by the host's index.
    test: u32,
    first_iteration: u64,
    /// Whether it may wait for other workers of its test.
    combines: bool,
}

/// What the driver wrote into the page itself.
#[derive(Default)]
pub(super) struct Orders {
    pub(super) command: Option<Command>,
    pub(super) go: bool,
    pub(super) kept: bool,
    pub(super) cancelled: BTreeSet<usize>,
}

/// What is believed of a host.
pub(crate) struct Witness {
    believed: Page,
    fresh: Page,
    clock: Clock,
    started: Ticks,
    plugins: usize,
    /// Whether lives of a test follow each other: what is contained in it is then numbered anew in each.
    strict: bool,
    /// By test: whether it is contained, and the number of its first iteration then.
    tests: Vec<Option<u64>>,
    /// By worker slot.
    workers: Vec<Part>,
    pub(super) orders: RefCell<Orders>,
    /// Since when somebody waits for us although no failure is on its way.
    held: Option<Instant>,
}

impl Witness {
    /// Believes nothing yet of a host that is to run these.
    pub(super) fn new(
        clock: &Clock,
        plugins: usize,
        tests: &[TestPlan],
        strict: bool,
    ) -> io::Result<Witness> {
        let mut workers: Vec<(usize, Part)> = Vec::new();
        for (index, test) in tests.iter().enumerate() {
            workers.extend(test.workers.iter().map(|worker| {
                let combines = test.combiner.is_some();
                (worker.slot, Part { test: index as u32, first_iteration: worker.first_iteration, combines })
            }));
        }
        workers.sort_by_key(|(slot, _)| *slot);
        Ok(Witness {
            believed: Page::create(clock)?,
            fresh: Page::create(clock)?,
            clock: *clock,
            started: clock.now(),
            plugins,
            strict,
            tests: tests
                .iter()
                .map(|test| test.contained.as_ref().map(|inside| inside.first_iteration))
                .collect(),
            workers: workers.into_iter().map(|(_, part)| part).collect(),
            orders: RefCell::default(),
            held: None,
        })
    }

    /// What was last believed. Only the slots of tests and workers, and the host's phase, are in it.
    pub(crate) fn believed(&self) -> &Layout {
        self.believed.layout()
    }

    /// Looks at the page, and believes what it shows unless it cannot be.
    pub(super) fn observe(&mut self, page: &Page) -> Result<(), Contradiction> {
        let live = page.layout();
        let fresh = self.fresh.layout();
        for (to, from) in fresh.tests.iter().zip(&live.tests).take(self.tests.len()) {
            to.copy_from(from);
        }
        for (to, from) in fresh.workers.iter().zip(&live.workers).take(self.workers.len()) {
            to.copy_from(from);
        }
        let header = [
            (&fresh.header.phase, &live.header.phase),
            (&fresh.header.loading, &live.header.loading),
            (&fresh.header.command, &live.header.command),
            (&fresh.header.go, &live.header.go),
            (&fresh.header.kept, &live.header.kept),
            (&fresh.header.quiesce, &live.header.quiesce),
            (&fresh.header.ending, &live.header.ending),
        ];
        header.iter().for_each(|(to, from)| to.store(from.load(Ordering::Acquire), Ordering::Relaxed));
        let counters = [
            (&fresh.header.windows, &live.header.windows),
            (&fresh.header.suspensions, &live.header.suspensions),
        ];
        counters.iter().for_each(|(to, from)| to.store(from.load(Ordering::Acquire), Ordering::Relaxed));

        // Read after the copy: nothing in it can be later.
        let now = self.clock.now();
        let fault = self.fault_in_header(page).or_else(|| {
            let tests = self.tests.iter().enumerate().find_map(|(test, _)| self.fault_in_test(test, now));
            tests.or_else(|| (0..self.workers.len()).find_map(|slot| self.fault_in_worker(slot, now)))
        });
        let fault = fault.or_else(|| self.ended_in_an_iteration(live));
        let fault = fault.or_else(|| live.impossible_record(self.tests.len(), self.workers.len()));
        let fault = fault.or_else(|| self.held_for_nothing(live));
        match fault {
            Some(fault) => Err(Contradiction(fault)),
            None => {
                std::mem::swap(&mut self.believed, &mut self.fresh);
                Ok(())
            }
        }
    }

    fn fault_in_header(&self, page: &Page) -> Option<String> {
        if !page.is_intact() {
            return Some("words at the border of the shared page are not as we wrote them".to_owned());
        }
        let (now, before, orders) =
            (&self.fresh.layout().header, &self.believed.layout().header, self.orders.borrow());
        let ours = [
            ("the command to the host", &now.command, orders.command.map_or(0, |command| command as u32)),
            ("the word that lets it begin", &now.go, u32::from(orders.go)),
            ("the word that keeps it for a debugger", &now.kept, u32::from(orders.kept)),
            // Nobody looks at a host while evidence is taken from it or its randomizer ends.
            ("the word that keeps the randomizer away", &now.quiesce, 0),
            ("the word that ends the randomizer", &now.ending, 0),
        ];
        if let Some((what, word, value)) =
            ours.iter().find(|(_, word, value)| word.load(Ordering::Relaxed) != *value)
        {
            let word = word.load(Ordering::Relaxed);
            return Some(format!("{what} is {word}, and we wrote {value}"));
        }
        let phase = HostPhase::load(&now.phase);
        if !HostPhase::is_known(&now.phase) || phase < HostPhase::load(&before.phase) {
            let number = now.phase.load(Ordering::Relaxed);
            return Some(format!("the host's phase is {number} after {:?}", HostPhase::load(&before.phase)));
        }
        if phase == HostPhase::Left && orders.command != Some(Command::Leave) {
            return Some("the host left, and we did not tell it to".to_owned());
        }
        let loading = now.loading.load(Ordering::Relaxed) as usize;
        if loading >= self.plugins.max(1) {
            return Some(format!("the host loads plugin {loading} of {}", self.plugins));
        }
        let most = self.most(self.clock.now(), 1);
        [("windows", &now.windows, &before.windows), ("suspensions", &now.suspensions, &before.suspensions)]
            .into_iter()
            .find_map(|(what, now, before)| counts(what, now, before, most))
    }

    fn fault_in_test(&self, test: usize, now: Ticks) -> Option<String> {
        let (shown, before) = (&self.fresh.layout().tests[test], &self.believed.layout().tests[test]);
        let named = |fault: String| format!("of test {}, {fault}", test + 1);
        let phase = TestPhase::load(&shown.phase);
        let back = phase == TestPhase::Absent && TestPhase::load(&before.phase) != TestPhase::Absent;
        if !TestPhase::is_known(&shown.phase) || back {
            return Some(named(format!("the phase is {}", shown.phase.load(Ordering::Relaxed))));
        }
        let ordered = u32::from(self.orders.borrow().cancelled.contains(&test)) * Command::Cancel as u32;
        if shown.command.load(Ordering::Relaxed) != ordered {
            let command = shown.command.load(Ordering::Relaxed);
            return Some(named(format!("the command is {command}, and we wrote {ordered}")));
        }
        let workers = self.workers.len() as u64;
        let most = self.most(now, workers);
        let fault = self.moment("the phase began", &shown.phase_at, now);
        let fault = fault.or_else(|| counts("failures", &shown.failures, &before.failures, most));
        let fault = fault.or_else(|| self.fault_in_contained(test, shown, before, now, most));
        fault.map(named)
    }

    fn fault_in_contained(
        &self,
        test: usize,
        shown: &TestSlot,
        before: &TestSlot,
        now: Ticks,
        most: u64,
    ) -> Option<String> {
        let first = self.tests[test]?;
        let next = first.saturating_add(most);
        let long = self.longest(now);
        let together = long.saturating_mul(self.workers.len().max(1) as u64);
        let shortest = AtomicU64::new(match shown.shortest_inverted.load(Ordering::Relaxed) {
            0 => 0,
            inverted => !inverted,
        });
        let is_sum = |word: &AtomicU64| {
            let sum = f64::from_bits(word.load(Ordering::Relaxed));
            sum >= 0.0 && sum.is_finite()
        };
        if !(is_sum(&shown.squares) && is_sum(&shown.asked)) {
            return Some("a sum is no number".to_owned());
        }
        counts("iterations", &shown.runs, &before.runs, most)
            .or_else(|| counts("failed iterations", &shown.failed_runs, &before.failed_runs, most))
            .or_else(|| match self.strict {
                true => at_most("the next iteration", &shown.next_iteration, MOST_NUMBERED),
                false => counts("the next iteration", &shown.next_iteration, &before.next_iteration, next),
            })
            .or_else(|| counts("ticks in iterations", &shown.busy, &before.busy, together))
            .or_else(|| at_most("ticks of the longest iteration", &shown.longest, long))
            .or_else(|| at_most("ticks of the shortest iteration", &shortest, long))
    }

    fn fault_in_worker(&self, slot: usize, now: Ticks) -> Option<String> {
        let part = &self.workers[slot];
        let (shown, before) = (&self.fresh.layout().workers[slot], &self.believed.layout().workers[slot]);
        let fault = self.fault_in_state(part, shown, before).or_else(|| {
            let (long, most) = (self.longest(now), self.most(now, 1));
            self.moment("the iteration began", &shown.entered_at, now)
                .or_else(|| counts("iterations", &shown.finished, &before.finished, most))
                .or_else(|| {
                    let last = part.first_iteration.saturating_add(most);
                    counts("the iteration", &shown.iteration, &before.iteration, last)
                })
                .or_else(|| counts("ticks in iterations", &shown.busy, &before.busy, long))
                .or_else(|| at_most("ticks of the longest iteration", &shown.longest, long))
                .or_else(|| at_most("ticks of the shortest iteration", &shown.shortest, long))
        });
        fault.map(|fault| format!("of worker {}, {fault}", slot + 1))
    }

    fn fault_in_state(&self, part: &Part, shown: &WorkerSlot, before: &WorkerSlot) -> Option<String> {
        let number = shown.state.load(Ordering::Relaxed);
        let (state, was) = (WorkerState::load(&shown.state), WorkerState::load(&before.state));
        let over = |state| matches!(state, WorkerState::Done | WorkerState::Finished);
        if !WorkerState::is_known(&shown.state)
            || state == WorkerState::Idle && was != WorkerState::Idle
            || over(was) && state != was
            || state == WorkerState::Waiting && !part.combines
        {
            return Some(format!("the state is {number} after {was:?}"));
        }
        let test = shown.test.load(Ordering::Relaxed);
        if state != WorkerState::Idle && test != part.test {
            return Some(format!("the test is number {test}, not {}", part.test));
        }
        let contained = [&shown.contained, &shown.last_contained];
        if contained.iter().any(|word| word.load(Ordering::Relaxed) as usize > self.tests.len()) {
            return Some("the contained test is none of the host's".to_owned());
        }
        (shown.reserved.load(Ordering::Relaxed) != 0).then(|| "a word that nobody uses is not 0".to_owned())
    }

    /// A host whose tests are over has no worker in an iteration, but for those of a test that could not begin one. Its phase is
    /// the older of the two.
    fn ended_in_an_iteration(&self, live: &Layout) -> Option<String> {
        let over = HostPhase::load(&self.fresh.layout().header.phase) >= HostPhase::Ended;
        let running = |slot: &usize| {
            let test = &live.tests[self.workers[*slot].test as usize];
            WorkerState::load(&live.workers[*slot].state) == WorkerState::Running
                && TestPhase::load(&test.phase) != TestPhase::Refused
        };
        let slot = (0..self.workers.len()).find(running).filter(|_| over)?;
        Some(format!("the host has ended its tests, and worker {} is in an iteration", slot + 1))
    }

    /// A thread that waits until we have looked at its failure is never late: without a failure it hides something.
    fn held_for_nothing(&mut self, live: &Layout) -> Option<String> {
        let fresh = self.fresh.layout();
        let held = fresh.workers[..self.workers.len()]
            .iter()
            .any(|worker| WorkerState::load(&worker.state) == WorkerState::Held)
            || fresh.tests[..self.tests.len()].iter().any(|test| test.held.load(Ordering::Relaxed) != 0);
        if !held || live.any_record_in_use() {
            self.held = None;
            return None;
        }
        let since = *self.held.get_or_insert_with(Instant::now);
        (since.elapsed() > LONGEST_HELD)
            .then(|| "a thread waits for us to look at its failure, and there is none".to_owned())
    }

    /// What can be counted in the host's life: an event takes a nanosecond at least.
    fn most(&self, now: Ticks, threads: u64) -> u64 {
        let nanoseconds = self.clock.duration(now.since(self.started)).as_nanos() as u64;
        nanoseconds.saturating_mul(threads.max(1)).saturating_add(SLACK_COUNT)
    }

    /// The longest that anything can have lasted, in ticks.
    fn longest(&self, now: Ticks) -> u64 {
        now.since(self.started).saturating_add(self.clock.ticks(SLACK))
    }

    fn moment(&self, what: &str, word: &AtomicU64, now: Ticks) -> Option<String> {
        let (at, slack) = (word.load(Ordering::Relaxed), self.clock.ticks(SLACK));
        let possible = self.started.0.saturating_sub(slack)..=now.0.saturating_add(slack);
        (at != 0 && !possible.contains(&at))
            .then(|| format!("{what} at tick {at}, outside of the host's life"))
    }
}

/// A counter falls never, and rises only so far.
fn counts(what: &str, now: &AtomicU64, before: &AtomicU64, most: u64) -> Option<String> {
    let (now_is, was) = (now.load(Ordering::Relaxed), before.load(Ordering::Relaxed));
    (now_is < was).then(|| format!("{what}: {now_is} after {was}")).or_else(|| at_most(what, now, most))
}

fn at_most(what: &str, word: &AtomicU64, most: u64) -> Option<String> {
    let value = word.load(Ordering::Relaxed);
    (value > most).then(|| format!("{what}: {value}, and {most} is the most that there can be"))
}

#[cfg(test)]
mod tests;
