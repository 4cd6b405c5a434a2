//! Runs repeated inside one process, for plugin tests.
//!
//! The runtime is made once; between two runs it forgets the threads, keeps their kernel threads in the pool, and
//! lets the strategy learn. The thread that drives the runs stays where it sits (on the carrier, once it has been
//! there) and is unmanaged between runs. What becomes of threads that a run leaves running is decided in [`closing`];
//! which run comes next and what is counted, in [`Series`].

use waylay_control_protocol::{Begun, Ending, RunSummary};
use waylay_schedule::{Event, EventKind, Run, Seed, Source, ThreadId};

use super::{Runtime, closing, ending, lifecycle, outside, point, pool, preempt, runtime};
use crate::heap::strict;
use crate::instrument;
use crate::interpose::forget_timers;
use crate::me::{me, set_me};
use crate::sched::{Key, Series, Shares, Stage};

/// What `end` waits for: an address that no object of the program has.
const OTHERS: Key = Key(1);

impl Runtime {
    /// The runs of this process, and what they are made with.
    fn stage(&mut self) -> (&mut Series, Stage<'_>) {
        let Runtime { series, sched, region, limits, .. } = self;
        (series, Stage { sched, region, limits })
    }
}

/// Begins a run on the calling thread, which is the main thread of the process's runs.
///
/// # Safety
/// The runtime is installed, and no run goes on.
pub(crate) unsafe fn begin(index: u64) -> Begun {
    // SAFETY: between runs the token belongs to the thread that drives them.
    unsafe {
        let runtime = runtime();
        let (series, stage) = (*runtime).stage();
        let run = match series.begin(index, stage) {
            Ok(run) => run,
            Err(refusal) => return refusal,
        };
        (*runtime).random.begin(Run { seed: Seed(!run.seed.0), index });
        pool::notice_modules();
        let main = (*runtime).main;
        lifecycle::register(main);
        instrument::begin_run();
        // Most runs follow nothing, and allocate as fast as they would without us.
        strict::control_while(instrument::edge::follows());
        outside::set_running(true);
        forget_timers();
        set_me(main);
        Begun::Yes
    }
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
        let waited =
            point::acquire(main, event, OTHERS, Shares::ALL, None, alone, || alone().then_some(()));
        closing::close();
        outside::set_running(false);
        let runtime = runtime();
        let left = if waited.is_ok() { 0 } else { (*runtime).sched.live() - 1 };
        if (*runtime).series.follows(&(*runtime).region) {
            ending::finalise(Ending::Exited);
        }
        let (series, stage) = (*runtime).stage();
        let summary = series.end(failed, left, stage);
        if left == 0 {
            forget_threads(&mut *runtime);
        }
        summary
    }
}

/// Stops the run where it is: the calling thread keeps the token for good. Works in a signal handler, too.
///
/// # Safety
/// The runtime is installed.
pub(crate) unsafe fn stop() {
    set_me(core::ptr::null_mut());
    // A thread beside the schedule that fails has no token, and leaves everything as it is.
    if !preempt::is_held_by_caller() {
        return;
    }
    outside::set_running(false);
    // SAFETY: the caller's kernel thread executes the token's holder.
    unsafe { conclude(Ending::Exited) };
}

/// Everything that the driver and the next process want to know about a run that was stopped.
///
/// # Safety
/// The caller holds the token.
pub(super) unsafe fn conclude(ending: Ending) {
    // SAFETY: by the caller's promise.
    unsafe {
        let runtime = runtime();
        let (series, stage) = (*runtime).stage();
        if !series.is_going() {
            series.leave_off(stage);
            return;
        }
        let looked_at = series.stop(ending, stage);
        // Last, because the driver looks as soon as it sees the ending.
        if looked_at || ending != Ending::Exited {
            ending::finalise(ending);
        }
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

fn forget_threads(runtime: &mut Runtime) {
    for &thread in runtime.logicals.iter().filter(|&&thread| thread != runtime.main) {
        // SAFETY: every thread but the main one has finished; those in the pool wait there, the others are gone and
        // nobody has a pointer to them once the tables are cleared.
        unsafe {
            if !(*thread).recyclable {
                drop(Box::from_raw(thread));
            } else if !(*thread).pooled {
                (*thread).pooled = true;
                runtime.pool.push(thread);
            }
        }
    }
    // The first comes out first: a thread of the next run has the stack that the thread with its number had in this one, and
    // would have in a process that begins with it.
    runtime.pool.sort_unstable_by_key(|&thread| {
        // SAFETY: threads in the pool live until the process ends.
        core::cmp::Reverse(unsafe { (*thread).made })
    });
    runtime.logicals.clear();
    runtime.handles.clear();
}
