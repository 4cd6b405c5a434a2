//! Runs repeated inside one process, for plugin tests.
//!
//! The runtime is made once; between two runs it forgets the threads and lets the strategy learn. The thread that drives
//! the runs is unmanaged between them. What becomes of threads that a run leaves running is decided in [`closing`], and how
//! often the first run is made again by [`Settling`].
//!
//! A process that follows a schedule of another one first makes runs of that one, with that one's strategy: what it was to
//! follow waits in [`Series`] meanwhile.

use core::sync::atomic::{AtomicU64, Ordering};

use waylay_control_protocol::{Begun, Earlier, Ending, RunSummary};
use waylay_schedule::{
    AnyStrategy, Event, EventKind, Handover, Outcome, Run, RunParameters, RunReport, Seed, Strategy, ThreadId,
};
use waylay_scheduler::{Key, Looks, Settling, Shares};
use windows_sys::Win32::System::Threading::GetCurrentThreadId;

use super::{Runtime, SHARED, closing, ending, handover, lifecycle, outside, point, pool, runtime};
use crate::me::{me, set_me};

/// What `end` waits for: an address that no object of the program has.
const OTHERS: Key = Key(1);

/// What is kept about the runs of this process.
#[derive(Default)]
pub(crate) struct Series {
    /// What the first run is given, when another process left it.
    pub(super) resume: Option<RunParameters>,
    /// What the run that goes on was given.
    planned: RunParameters,
    index: u64,
    /// Runs that began.
    begun: u64,
    going: bool,
    settling: Settling,
    /// The run that comes next is the last one again.
    again: bool,
    /// What is followed once the runs of the past are made.
    future: Option<Future>,
    /// A run was stopped or left threads behind: there is no further one.
    pub(super) over: bool,
}

/// A run that follows a schedule, behind runs that do not.
struct Future {
    strategy: AnyStrategy,
    resume: Option<RunParameters>,
    /// Runs that come before it.
    earlier: u64,
    max_steps: u64,
}

impl Series {
    /// Whether the run that goes on comes before the one that the process was started for.
    pub(super) fn is_in_the_past(&self) -> bool {
        self.future.is_some()
    }
}

impl Runtime {
    /// The first run is made again at most so often.
    pub(super) fn let_settle(&mut self, most: u32) {
        self.series.settling = Settling::at_most(most.into());
    }

    /// Has these runs made before the strategy is asked: by another one, from these parameters on. They have passed once,
    /// so nothing ends them.
    pub(super) fn put_off(&mut self, earlier: Earlier, (strategy, parameters): (AnyStrategy, RunParameters)) {
        let given = Some(parameters).filter(|given| !is_fresh(given));
        self.series.settling = Settling::exactly(earlier.repeats);
        self.series.future = Some(Future {
            strategy: core::mem::replace(self.sched.strategy(), strategy),
            resume: core::mem::replace(&mut self.series.resume, given),
            earlier: earlier.count(),
            max_steps: core::mem::replace(&mut self.settings.max_steps, u64::MAX),
        });
        self.step_limit = u64::MAX;
    }

    /// The past is made: from here on the strategy is asked that the process was started with.
    fn arrive(&mut self) {
        if let Some(future) = self.series.future.take_if(|future| self.series.begun == future.earlier) {
            *self.sched.strategy() = future.strategy;
            self.series.resume = future.resume;
            self.series.settling.is_over();
            self.series.again = false;
            (self.settings.max_steps, self.step_limit) = (future.max_steps, future.max_steps);
        }
    }

    /// Whether the run that goes on follows a schedule or switches that it was given.
    fn follows(&self) -> bool {
        !self.series.is_in_the_past() && (self.region.replay().is_some() || self.region.guidance().is_some())
    }
}

/// Whether a strategy that is given these has to plan its first run itself.
pub(super) fn is_fresh(parameters: &RunParameters) -> bool {
    *parameters == RunParameters::of(parameters.strategy.as_str())
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
        (*runtime).arrive();
        let series = &mut (*runtime).series;
        let again = core::mem::take(&mut series.again).then(|| core::mem::take(&mut series.planned));
        let given = again.or_else(|| series.resume.take());
        let Some(parameters) = given.or_else(|| (*runtime).sched.strategy().plan(run)) else {
            return Begun::Exhausted;
        };
        count_beginning(&*runtime, index, &parameters);
        pool::renew();
        (*runtime).sched.clear();
        (*runtime).spins = Looks::default();
        (*runtime).sched.strategy().begin(run, &parameters);
        (*runtime).series.planned = parameters;
        (*runtime).series.index = index;
        (*runtime).series.begun += 1;
        (*runtime).series.going = true;
        let main = (*runtime).main;
        lifecycle::register(main);
        outside::set_running(true);
        set_me(main);
        Begun::Yes
    }
}

fn count_beginning(runtime: &Runtime, index: u64, parameters: &RunParameters) {
    let report = runtime.region.report();
    let tally = &report.tally;
    if runtime.series.begun == 0 {
        tally.first.store(index + 1, Ordering::Relaxed);
    }
    report.partly_controlled.store(0, Ordering::Relaxed);
    let aimed = &tally.aimed[(parameters.depth as usize).min(tally.aimed.len() - 1)];
    // One thread writes, so a load and a store are enough.
    tally.runs.store(tally.runs.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    aimed.store(aimed.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    tally.reach.store(tally.reach.load(Ordering::Relaxed).max(parameters.steps), Ordering::Relaxed);
}

/// The run that ended is made again, so it never was.
fn uncount(runtime: &Runtime) {
    let tally = &runtime.region.report().tally;
    let depth = runtime.series.planned.depth as usize;
    let less = |word: &AtomicU64| word.store(word.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
    less(&tally.runs);
    less(&tally.aimed[depth.min(tally.aimed.len() - 1)]);
    tally.repeats.store(tally.repeats.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
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
        let mut summary = summary(&*runtime, left);
        if failed || left > 0 {
            (*runtime).series.settling.is_over();
        }
        let again = (*runtime).series.settling.again(|| (*runtime).region.told().schedule);
        if (*runtime).follows() {
            ending::finalise(Ending::Exited);
        }
        (*runtime).series.going = false;
        if again {
            summary.again = 1;
            (*runtime).series.again = true;
            uncount(&*runtime);
        } else {
            count_end(&*runtime, &summary);
            tell_strategy(&mut *runtime, failed);
        }
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
        let looked_at = (*runtime).follows() || (*runtime).series.is_in_the_past();
        if looked_at || ending != Ending::Exited {
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
