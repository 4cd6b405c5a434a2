//! Strict mode: schedule after schedule of one test, in this process, under the control library.
//!
//! The calling thread is the only one of the host: it begins and ends runs, and is free in between. There is no thread
//! beside the schedule, so a state in which no thread can run is a deadlock at once.
//!
//! The first schedule may have to be played again, until everything is made that a test makes on first use: the control
//! library says so. Only then it counts.
//!
//! A failure does not come back here: the thread that failed stops the run, hands the failure over and waits to be
//! killed with the process. The next process goes on with the next schedule. Only in a trial of a comparison a failure
//! that the test itself reports is told and does not end anything.

use std::sync::atomic::Ordering;

use waylay_page::{Command, Layout, TestPhase, WorkerState};

use crate::event::Event;
use crate::factory::TestFactory;
use crate::plan::{TestPlan, TrialPlan};
use crate::stage::Stage;
use crate::sys::{Begun, RunControl};

/// Schedules between two looks whether the driver is still there.
const LOOK: u64 = 1024;

/// What is played.
pub(crate) struct Lives<'a> {
    pub(crate) stage: &'static Stage,
    /// Who makes the schedules; none when threads run freely.
    pub(crate) control: Option<&'a RunControl>,
    /// The test, followed by those that it contains.
    pub(crate) tests: &'a [TestPlan],
    pub(crate) trial: Option<TrialPlan>,
}

/// Plays schedules until cancelled, out of schedules, or until this process can make no further one.
pub(crate) fn run(
    lives: &Lives<'_>,
    layout: &'static Layout,
    factory: &TestFactory,
    leave_if_orphaned: impl Fn(),
) -> Result<(), String> {
    let Lives { stage, control, tests, trial } = *lives;
    let plans = tests.first().map_or(&[][..], |test| &test.workers);
    let Some(first) = plans.first() else { return Ok(()) };
    let (test, index) = (stage.test, stage.test.index as usize);
    let count = &layout.workers[first.slot];
    let end = first.iterations.map_or(u64::MAX, |count| first.first_iteration.saturating_add(count));
    let mut run = first.first_iteration;
    let mut done = WorkerState::Done;
    let (mut finished, mut busy, mut shortest, mut longest) = (0u64, 0u64, u64::MAX, 0u64);
    test.enter(if run == 0 { TestPhase::Creating } else { TestPhase::Running });
    for plan in plans {
        layout.workers[plan.slot].test.store(test.index, Ordering::Relaxed);
    }
    let began = test.clock.now();
    while run < end
        && Command::load(&layout.header.command) == Command::Run
        && Command::load(&layout.tests[index].command) == Command::Run
    {
        if finished.is_multiple_of(LOOK) {
            leave_if_orphaned();
        }
        let entered = test.clock.now();
        for plan in plans {
            let slot = &layout.workers[plan.slot];
            slot.iteration.store(run, Ordering::Relaxed);
            slot.entered_at.store(entered.0, Ordering::Relaxed);
            WorkerState::Running.store(&slot.state);
        }
        let failures = failures_of(layout, tests.len());
        match control.map_or(Begun::Yes, |control| control.begin(run)) {
            Begun::Yes => {}
            Begun::Exhausted => {
                factory.tell(&Event::Exhausted { test: index });
                done = WorkerState::Finished;
                break;
            }
            Begun::Refused => return Err("the control library refuses to begin a run".to_owned()),
        }
        let played = stage.play(run);
        let failed = failures_of(layout, tests.len()) != failures;
        let ended = control.map(|control| control.end(failed)).unwrap_or_default();
        if let Err(reason) = played {
            TestPhase::Refused.store(&test.slot().phase);
            factory.tell(&Event::TestRefused { test: index, reason });
            return Ok(());
        }
        if ended.again != 0 {
            continue;
        }
        let took = test.clock.now().since(entered);
        finished += 1;
        busy += took;
        shortest = shortest.min(took);
        longest = longest.max(took);
        count.finished.store(finished, Ordering::Relaxed);
        count.busy.store(busy, Ordering::Relaxed);
        count.shortest.store(shortest, Ordering::Relaxed);
        count.longest.store(longest, Ordering::Relaxed);
        if failed {
            let ticks = test.clock.now().since(began);
            factory.tell(&Event::Failed { test: index, run, ticks });
            if !trial.is_some_and(|trial| trial.count) {
                break;
            }
        }
        if ended.left > 0 {
            factory.tell(&Event::LeftBehind { test: index, run, threads: ended.left });
            break;
        }
        run += 1;
    }
    // Leaves what the strategy knows for a host that goes on later.
    crate::sys::stop_run();
    for plan in plans {
        done.store(&layout.workers[plan.slot].state);
    }
    TestPhase::Ended.store(&test.slot().phase);
    Ok(())
}

/// Failures of the test and of those that it contains.
fn failures_of(layout: &Layout, tests: usize) -> u64 {
    layout.tests[..tests].iter().map(|test| test.failures.load(Ordering::Relaxed)).sum()
}
