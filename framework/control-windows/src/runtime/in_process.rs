//! Runs repeated inside one process, for plugin tests.
//!
//! The runtime is made once; between two runs it forgets the threads and lets the strategy learn. The thread that drives
//! the runs is unmanaged between them. What becomes of threads that a run leaves running is decided in [`closing`].

use core::sync::atomic::Ordering;

use waylay_control_protocol::{Begun, Ending, RunSummary};
use waylay_schedule::{
    Event, EventKind, Handover, Outcome, Run, RunParameters, RunReport, Seed, Strategy, ThreadId,
};
use waylay_scheduler::{Key, Looks, Shares};
use windows_sys::Win32::System::Threading::GetCurrentThreadId;

use super::{Runtime, SHARED, closing, ending, handover, lifecycle, outside, point, pool, runtime};
use crate::me::{me, set_me};

/// What `end` waits for: an address that no object of the program has.
const OTHERS: Key = Key(1);

/// What is kept about the runs of this process.
#[derive(Debug, Default)]
pub(crate) struct Series {
    /// What the first run is given, when another process left it.
    pub(super) resume: Option<RunParameters>,
    /// What the run that goes on was given.
    planned: RunParameters,
    index: u64,
    going: bool,
    /// A run was stopped or left threads behind: there is no further one.
    pub(super) over: bool,
}

/// Begins a run on the calling thread, which is the main thread of the process's runs.
///
/// # Safety
/// The runtime is installed, and no run goes on.
pub(crate) unsafe fn begin(index: u64) -> Begun {
    // SAFETY: between runs the token belongs to the thread that drives them.
    unsafe {
        let runtime = runtime();
        if (*runtime).series.over {
            return Begun::Refused;
        }
        let run = Run { seed: Seed((*runtime).settings.seed), index };
        let resumed = (*runtime).series.resume.take();
        let Some(parameters) = resumed.or_else(|| (*runtime).sched.strategy().plan(run)) else {
            return Begun::Exhausted;
        };
        count_beginning(&*runtime, &parameters);
        pool::renew();
        (*runtime).sched.clear();
        (*runtime).spins = Looks::default();
        (*runtime).sched.strategy().begin(run, &parameters);
        (*runtime).series.planned = parameters;
        (*runtime).series.index = index;
        (*runtime).series.going = true;
        let main = (*runtime).main;
        lifecycle::register(main);
        outside::set_running(true);
        set_me(main);
        Begun::Yes
    }
}

fn count_beginning(runtime: &Runtime, parameters: &RunParameters) {
    let report = runtime.region.report();
    let tally = &report.tally;
    report.partly_controlled.store(0, Ordering::Relaxed);
    let aimed = &tally.aimed[(parameters.depth as usize).min(tally.aimed.len() - 1)];
    // One thread writes, so a load and a store are enough.
    tally.runs.store(tally.runs.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    aimed.store(aimed.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    tally.reach.store(tally.reach.load(Ordering::Relaxed).max(parameters.steps), Ordering::Relaxed);
}

/// Ends the run.
///
/// # Safety
/// A run goes on, and its main thread makes the call.
pub(crate) unsafe fn end(failed: bool) -> RunSummary {
    // SAFETY: the main thread runs program code, so it has the token.
    unsafe {
        let main = me();
        set_me(core::ptr::null_mut());
        let event = Event::on_thread(EventKind::ThreadJoin, ThreadId::MAIN);
        let alone = || (*runtime()).sched.live() == 1;
        closing::open();
        let waited = point::acquire(main, event, OTHERS, Shares::ALL, None, alone, || alone().then_some(()));
        closing::close();
        outside::set_running(false);
        if !(*runtime()).leaving.is_null() {
            handover::see_off();
        }
        let runtime = runtime();
        let left = if waited.is_ok() { 0 } else { (*runtime).sched.live() - 1 };
        let summary = summary(&*runtime, left);
        count_end(&*runtime, &summary);
        if (*runtime).region.replay().is_some() || (*runtime).region.guidance().is_some() {
            ending::finalise(Ending::Exited);
        }
        (*runtime).series.going = false;
        tell_strategy(&mut *runtime, failed);
        if left > 0 {
            hand_over(&mut *runtime);
        } else {
            forget_threads(&mut *runtime);
        }
        summary
    }
}

fn summary(runtime: &Runtime, left: u32) -> RunSummary {
    let report = runtime.region.report();
    RunSummary {
        steps: runtime.sched.steps,
        switches: runtime.sched.switches,
        stretches: report.stretches.load(Ordering::Relaxed),
        threads: runtime.sched.thread_count() as u32,
        partly_controlled: report.partly_controlled.load(Ordering::Relaxed),
        left,
        again: 0,
    }
}

fn count_end(runtime: &Runtime, summary: &RunSummary) {
    let tally = &runtime.region.report().tally;
    tally.steps.store(tally.steps.load(Ordering::Relaxed) + summary.steps, Ordering::Relaxed);
    tally.longest.store(tally.longest.load(Ordering::Relaxed).max(summary.steps), Ordering::Relaxed);
    tally.threads.store(tally.threads.load(Ordering::Relaxed).max(summary.threads), Ordering::Relaxed);
    if summary.partly_controlled != 0 {
        let runs = &tally.partly_controlled;
        runs.store(runs.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
    tally.left.store(summary.left, Ordering::Relaxed);
}

/// Stops the run where it is: the calling thread keeps the token for good. Works in an exception filter, too.
///
/// # Safety
/// The runtime is installed.
pub(crate) unsafe fn stop() {
    set_me(core::ptr::null_mut());
    // A thread beside the schedule that fails has no token, and leaves everything as it is.
    // SAFETY: plain call.
    if unsafe { GetCurrentThreadId() } != SHARED.holder.load(Ordering::Relaxed) {
        return;
    }
    outside::set_running(false);
    // SAFETY: the caller's kernel thread executes the token's holder.
    unsafe { conclude(Ending::Exited) };
}

/// Everything that the driver and the next process want to know about a run that failed.
///
/// # Safety
/// The caller holds the token.
pub(super) unsafe fn conclude(ending: Ending) {
    // SAFETY: by the caller's promise.
    unsafe {
        let runtime = runtime();
        if !(*runtime).series.going {
            // Between two runs: the host ends in order, and another may go on.
            let begun = (*runtime).region.report().tally.runs.load(Ordering::Relaxed) > 0;
            if begun && !(*runtime).series.over {
                hand_over(&mut *runtime);
            }
            return;
        }
        (*runtime).series.going = false;
        count_end(&*runtime, &summary(&*runtime, 0));
        tell_strategy(&mut *runtime, true);
        hand_over(&mut *runtime);
        // Last, because the driver looks as soon as it sees the ending.
        let followed = (*runtime).region.replay().is_some() || (*runtime).region.guidance().is_some();
        if followed || ending != Ending::Exited {
            ending::finalise(ending);
        }
    }
}

/// Leaves what the strategy knows for the process that goes on.
fn hand_over(runtime: &mut Runtime) {
    runtime.series.over = true;
    let next = Run { seed: Seed(runtime.settings.seed), index: runtime.series.index + 1 };
    let handover = Handover {
        run: core::mem::take(&mut runtime.series.planned),
        next: runtime.sched.strategy().plan(next),
    };
    if let Ok(text) = serde_json::to_string(&handover) {
        runtime.region.hand_over(&text);
    }
}

/// A thread has finished; whoever waits to be alone looks again.
///
/// # Safety
/// The caller holds the token.
pub(super) unsafe fn one_less() {
    // SAFETY: by the caller's promise.
    unsafe { (*runtime()).sched.freed(OTHERS, Shares::ALL) };
}

fn tell_strategy(runtime: &mut Runtime, failed: bool) {
    runtime.lengths.clear();
    for index in 0..runtime.logicals.len() {
        runtime.lengths.push(runtime.sched.thread(ThreadId(index as u32)).steps);
    }
    let outcome = if failed { Outcome::Failed } else { Outcome::Passed };
    let report = RunReport { outcome, steps: runtime.sched.steps, lengths: &runtime.lengths, news: failed };
    runtime.sched.end(&report);
}

fn forget_threads(runtime: &mut Runtime) {
    for &thread in runtime.logicals.iter().filter(|&&thread| thread != runtime.main) {
        // SAFETY: every thread but the main one has finished and is gone, and nobody has a pointer to it once the tables
        // are cleared.
        drop(unsafe { Box::from_raw(thread) });
    }
    runtime.logicals.clear();
    runtime.by_number.clear();
    runtime.handles.forget();
    runtime.initialising.clear();
    runtime.mutexes.forget();
}
