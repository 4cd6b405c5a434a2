//! Runs repeated inside one process, for plugin tests.
//!
//! The runtime is made once; between two runs it forgets the threads, may keep their kernel threads, and lets the
//! strategy learn. The thread that drives the runs is unmanaged between them. What becomes of threads that a run leaves running is decided in [`closing`];
//! which run comes next and what is counted, in `Series` of `waylay-scheduler`.

use waylay_control_protocol::{Begun, Ending, RunSummary};
use waylay_schedule::{Event, EventKind, Run, Seed, Source, ThreadId};

use waylay_scheduler::{Key, Shares};

use crate::platform::Platform;
use crate::run::run;
use crate::{closing, ending, point};

/// What `end` waits for: an address that no object of the program has.
const OTHERS: Key = Key(1);

/// Begins a run on the calling thread, if everything can be made ready for it and none goes on there.
///
/// # Safety
/// No run goes on, and the calling thread drives the runs of the process.
pub unsafe fn begin_when<P: Platform>(ready: impl FnOnce() -> bool, index: u64) -> Begun {
    if !P::me().is_null() || !ready() {
        return Begun::Refused;
    }
    // SAFETY: by the caller's promise.
    unsafe { begin::<P>(index) }
}

/// Begins a run on the calling thread, which is the main thread of the process's runs.
///
/// # Safety
/// The runtime is installed, and no run goes on.
unsafe fn begin<P: Platform>(index: u64) -> Begun {
    // SAFETY: between runs the token belongs to the thread that drives them.
    unsafe {
        let run = run::<P>();
        let (series, stage) = (*run).stage();
        let seed = match series.begin(index, stage) {
            Ok(begun) => begun.seed,
            Err(refusal) => return refusal,
        };
        (*run).random.begin(Run { seed: Seed(!seed.0), index });
        P::renew();
        let main = (*run).main;
        P::register(main);
        P::begin_run();
        P::set_me(main);
        Begun::Yes
    }
}

/// Ends the run.
///
/// # Safety
/// A run goes on, and its main thread makes the call.
unsafe fn end<P: Platform>(failed: bool) -> RunSummary {
    // SAFETY: the main thread runs program code, so it has the token.
    unsafe {
        let main = P::me();
        P::set_me(core::ptr::null_mut());
        let event = Event::on_thread(EventKind::ThreadJoin, ThreadId::MAIN);
        let alone = || (*run::<P>()).sched.live() == 1;
        closing::open::<P>();
        let waited = point::acquire(main, event, OTHERS, Shares::ALL, None, alone, || alone().then_some(()));
        closing::close::<P>();
        P::set_running(false);
        P::before_end();
        let run = run::<P>();
        let left = if waited.is_ok() { 0 } else { (*run).sched.live() - 1 };
        if (*run).series.follows(&(*run).region) {
            ending::finalise::<P>(Ending::Exited);
        }
        let (series, stage) = (*run).stage();
        let summary = series.end(failed, left, stage);
        if left == 0 {
            P::forget_threads(&mut *run);
        }
        summary
    }
}

/// Ends the run, if the calling thread is in one, and writes down what it was.
///
/// # Safety
/// The calling thread is in no run, or is the main thread of the run that goes on; `summary` is null or writable.
pub unsafe fn end_into<P: Platform>(failed: bool, summary: *mut RunSummary) {
    if P::me().is_null() {
        return;
    }
    // SAFETY: by the caller's promise.
    unsafe {
        let numbers = end::<P>(failed);
        if !summary.is_null() {
            *summary = numbers;
        }
    }
}

/// Stops the run where it is: the calling thread keeps the token for good. Works in a handler of a signal or an exception, too.
///
/// # Safety
/// The runtime is installed.
pub unsafe fn stop<P: Platform>() {
    P::set_me(core::ptr::null_mut());
    // A thread beside the schedule that fails has no token, and leaves everything as it is.
    if !P::is_held_by_caller() {
        return;
    }
    P::set_running(false);
    // SAFETY: the caller's kernel thread executes the token's holder.
    unsafe { conclude::<P>(Ending::Exited) };
}

/// Everything that the driver and the next process want to know about a run that was stopped.
///
/// # Safety
/// The caller holds the token.
pub(crate) unsafe fn conclude<P: Platform>(ending: Ending) {
    // SAFETY: by the caller's promise.
    unsafe {
        let run = run::<P>();
        let (series, stage) = (*run).stage();
        if !series.is_going() {
            series.leave_off(stage);
            return;
        }
        let looked_at = series.stop(ending, stage);
        // Last, because the driver looks as soon as it sees the ending.
        if looked_at || ending != Ending::Exited {
            ending::finalise::<P>(ending);
        }
    }
}

/// A thread has finished; whoever waits to be alone looks again.
///
/// # Safety
/// The caller holds the token.
pub unsafe fn one_less<P: Platform>() {
    // SAFETY: by the caller's promise.
    unsafe { (*run::<P>()).sched.freed(OTHERS, Shares::ALL) };
}
