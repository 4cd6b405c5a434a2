//! Runs repeated inside one process, for plugin tests.
//!
//! The runtime is made once; between two runs it forgets the threads, keeps their kernel threads in the pool, and
//! lets the strategy learn. The thread that drives the runs stays where it sits (on the carrier, once it has been
//! there) and is unmanaged between runs.

use core::sync::atomic::Ordering;

use waylay_control_protocol::{Begun, RunSummary};
use waylay_schedule::{Event, EventKind, Outcome, Run, RunReport, Seed, Source, Strategy, ThreadId};

use super::{Runtime, lifecycle, outside, point, pool, runtime};
use crate::me::{me, set_me};
use crate::sched::{Key, Shares};

/// What `end` waits for: an address that no object of the program has.
const OTHERS: Key = Key(1);

/// Begins a run on the calling thread, which is the main thread of the process's runs.
///
/// # Safety
/// The runtime is installed, and no run goes on.
pub(crate) unsafe fn begin(index: u64) -> Begun {
    // SAFETY: between runs the token belongs to the thread that drives them.
    unsafe {
        let runtime = runtime();
        let run = Run { seed: Seed((*runtime).settings.seed), index };
        let Some(parameters) = (*runtime).sched.strategy().plan(run) else { return Begun::Exhausted };
        (*runtime).sched.clear();
        (*runtime).sched.strategy().begin(run, &parameters);
        (*runtime).random.begin(Run { seed: Seed(!run.seed.0), index });
        pool::notice_modules();
        let main = (*runtime).main;
        lifecycle::register(main);
        outside::set_running(true);
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
        while point::acquire(main, event, OTHERS, Shares::ALL, None, alone, || alone().then_some(())).is_err()
        {
        }
        outside::set_running(false);
        let runtime = runtime();
        let report = (*runtime).region.report();
        let summary = RunSummary {
            steps: (*runtime).sched.steps,
            switches: (*runtime).sched.switches,
            stretches: report.stretches.load(Ordering::Relaxed),
            threads: (*runtime).sched.thread_count() as u32,
            partly_controlled: report.partly_controlled.load(Ordering::Relaxed),
        };
        tell_strategy(&mut *runtime, failed);
        forget_threads(&mut *runtime);
        summary
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
    runtime.logicals.clear();
    runtime.handles.clear();
}
