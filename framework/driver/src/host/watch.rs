//! Who is late? A pure look at the shared page: no process is touched here.
//!
//! The host stores when each iteration and each phase began; this compares with the test's limits. Nothing needs the
//! host's cooperation, so a host that is frozen as a whole is seen like one that loops.

use std::sync::atomic::Ordering;
use std::time::Duration;

use waylay_page::{Clock, Layout, TestPhase, Ticks, WorkerState};

/// How long the parts of one test may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// One `TestMain`.
    pub(crate) hang: Duration,
    /// CreateInstance, OnTestStart; also the loading of the test's plugin.
    pub(crate) start: Duration,
    /// OnTestCancelled, waiting for the workers, OnTestEnd, DestroyInstance: each.
    pub(crate) cancel: Duration,
}

/// Something that takes longer than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overdue {
    /// A worker has been in one iteration for too long.
    Iteration {
        /// Its slot.
        worker: usize,
        /// Its test.
        test: usize,
        /// Number of the iteration.
        iteration: u64,
        /// For how long.
        since: Duration,
    },
    /// A test has been in one phase for too long.
    Phase {
        /// The test.
        test: usize,
        /// The phase.
        phase: TestPhase,
        /// The thread that runs it.
        tid: u32,
        /// For how long.
        since: Duration,
    },
    /// A plugin has been loading for too long.
    Loading {
        /// A test of the plugin.
        test: usize,
        /// The plugin.
        plugin: u32,
        /// The thread that loads.
        tid: u32,
        /// For how long.
        since: Duration,
    },
}

/// Everything that is late now. `workers` is the number of worker slots in use; `limits` is by test.
pub(crate) fn find_overdue(
    layout: &Layout,
    limits: &[Limits],
    workers: usize,
    clock: &Clock,
) -> Vec<Overdue> {
    let now = clock.now();
    let since = |word: u64| clock.duration(now.since(Ticks(word)));
    let mut found = Vec::new();
    for (worker, slot) in layout.workers.iter().enumerate().take(workers) {
        if WorkerState::load(&slot.state) != WorkerState::Running {
            continue;
        }
        // Read the iteration on both sides of the time: an iteration that ended in between is not late.
        let running = slot.running();
        let (test, iteration) = (running.0 as usize, running.1);
        let entered = slot.entered_at.load(Ordering::Acquire);
        let late = since(entered);
        if let Some(limit) = limits.get(test)
            && late > limit.hang
            && slot.running() == running
            && slot.entered_at.load(Ordering::Acquire) == entered
        {
            found.push(Overdue::Iteration { worker, test, iteration, since: late });
        }
    }
    for (test, limit) in limits.iter().enumerate() {
        let slot = &layout.tests[test];
        let phase = TestPhase::load(&slot.phase);
        let allowed = match phase {
            TestPhase::Creating | TestPhase::Starting => limit.start,
            TestPhase::Cancelling | TestPhase::Ending | TestPhase::Destroying => limit.cancel,
            // A worker that does not come back is reported as such, by its own limit, unless that is longer than
            // anybody wants to wait after a cancel.
            TestPhase::Draining => limit.cancel.max(limit.hang),
            _ => continue,
        };
        let late = since(slot.phase_at.load(Ordering::Acquire));
        // The time that the driver takes to look at a failure is not the test's.
        if late > allowed && slot.held.load(Ordering::Acquire) == 0 && TestPhase::load(&slot.phase) == phase {
            found.push(Overdue::Phase { test, phase, tid: slot.tid.load(Ordering::Relaxed), since: late });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use waylay_page::Page;

    const LIMITS: Limits = Limits {
        hang: Duration::from_secs(2),
        start: Duration::from_secs(5),
        cancel: Duration::from_secs(3),
    };

    fn ago(clock: &Clock, time: Duration) -> u64 {
        clock.now().0 - clock.ticks(time)
    }

    #[test]
    fn a_worker_is_late_only_after_its_limit_and_only_while_running() {
        let clock = Clock::calibrate();
        let page = Page::create(&clock).unwrap();
        let slot = &page.layout().workers[3];
        slot.test.store(0, Ordering::SeqCst);
        slot.iteration.store(41, Ordering::SeqCst);
        slot.entered_at.store(ago(&clock, Duration::from_secs(1)), Ordering::SeqCst);
        WorkerState::Running.store(&slot.state);
        assert_eq!(find_overdue(page.layout(), &[LIMITS], 8, &clock), []);

        slot.entered_at.store(ago(&clock, Duration::from_secs(3)), Ordering::SeqCst);
        let found = find_overdue(page.layout(), &[LIMITS], 8, &clock);
        assert!(
            matches!(found[..], [Overdue::Iteration { worker: 3, test: 0, iteration: 41, since }]
                if since >= Duration::from_secs(3)),
            "{found:?}"
        );

        WorkerState::Held.store(&slot.state);
        assert_eq!(find_overdue(page.layout(), &[LIMITS], 8, &clock), []);
    }

    #[test]
    fn a_contained_test_is_late_by_its_own_limit_and_a_waiting_worker_never_is() {
        let clock = Clock::calibrate();
        let page = Page::create(&clock).unwrap();
        let slot = &page.layout().workers[0];
        let patient = Limits { hang: Duration::from_secs(60), ..LIMITS };
        slot.test.store(0, Ordering::SeqCst);
        slot.entered_at.store(ago(&clock, Duration::from_secs(3)), Ordering::SeqCst);
        WorkerState::Running.store(&slot.state);
        assert_eq!(find_overdue(page.layout(), &[patient, LIMITS], 1, &clock), []);

        slot.contained.store(2, Ordering::SeqCst);
        slot.contained_iteration.store(7, Ordering::SeqCst);
        let found = find_overdue(page.layout(), &[patient, LIMITS], 1, &clock);
        assert!(
            matches!(found[..], [Overdue::Iteration { worker: 0, test: 1, iteration: 7, .. }]),
            "{found:?}"
        );

        slot.contained.store(0, Ordering::SeqCst);
        WorkerState::Waiting.store(&slot.state);
        assert_eq!(find_overdue(page.layout(), &[LIMITS, LIMITS], 1, &clock), []);
    }

    #[test]
    fn each_phase_has_its_own_limit() {
        let clock = Clock::calibrate();
        let page = Page::create(&clock).unwrap();
        let slot = &page.layout().tests[0];
        slot.phase_at.store(ago(&clock, Duration::from_secs(4)), Ordering::SeqCst);
        let late = |phase: TestPhase| {
            phase.store(&slot.phase);
            !find_overdue(page.layout(), &[LIMITS], 0, &clock).is_empty()
        };
        assert!(!late(TestPhase::Starting));
        assert!(late(TestPhase::Cancelling));
        assert!(late(TestPhase::Draining));
        assert!(late(TestPhase::Ending));
        assert!(!late(TestPhase::Running));
        assert!(!late(TestPhase::Ended));
    }

    #[test]
    fn a_phase_that_waits_for_the_driver_is_not_late() {
        let clock = Clock::calibrate();
        let page = Page::create(&clock).unwrap();
        let slot = &page.layout().tests[0];
        slot.phase_at.store(ago(&clock, Duration::from_secs(4)), Ordering::SeqCst);
        TestPhase::Ending.store(&slot.phase);
        slot.held.store(1, Ordering::SeqCst);
        assert_eq!(find_overdue(page.layout(), &[LIMITS], 0, &clock), []);
        slot.held.store(0, Ordering::SeqCst);
        assert_eq!(find_overdue(page.layout(), &[LIMITS], 0, &clock).len(), 1);
    }

    #[test]
    fn a_counter_that_runs_ahead_on_another_core_is_not_late() {
        let clock = Clock::calibrate();
        let page = Page::create(&clock).unwrap();
        let slot = &page.layout().workers[0];
        slot.entered_at.store(clock.now().0 + clock.ticks(Duration::from_secs(1)), Ordering::SeqCst);
        WorkerState::Running.store(&slot.state);
        assert_eq!(find_overdue(page.layout(), &[LIMITS], 1, &clock), []);
    }
}
