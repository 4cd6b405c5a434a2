//! How a run ends, and what the driver reads about it.

use core::sync::atomic::Ordering;

use waylay_control_protocol::{DEADLOCK_STATUS, Ending, RACE_STATUS, STEP_LIMIT_STATUS, Statement};
use waylay_scheduler::{Asks, State};

use crate::platform::{Platform, Thread};
use crate::run::run;
use crate::{closing, in_process, inspect};

/// Writes the numbers of the run and how it ended; the first ending stays.
///
/// # Safety
/// The caller holds the token.
pub unsafe fn finalise<P: Platform>(ending: Ending) {
    // SAFETY: by the caller's promise.
    unsafe {
        let run = run::<P>();
        let report = (*run).region.report();
        if report.ending.load(Ordering::Relaxed) != Ending::Unfinished as u32 {
            return;
        }
        P::before_report(ending);
        let in_the_past = (*run).series.is_in_the_past();
        (*run).sched.report_into(&(*run).region, in_the_past);
        report.ending.store(ending as u32, Ordering::Release);
    }
}

/// Nobody can run, ever: reports every thread and ends the process.
///
/// # Safety
/// `me` executes the call and holds the token.
#[cold]
pub unsafe fn deadlock<T: Thread>(me: *mut T) -> ! {
    // SAFETY: by the caller's promise; no thread runs program code after this.
    unsafe {
        let run = run::<T::System>();
        let live = (*run).sched.live();
        T::System::say(format_args!(
            "deadlock after {} steps: {live} threads, none can run",
            (*run).sched.steps
        ));
        inspect::tell::<T::System>(&Statement::Deadlock(live));
        inspect::describe_all(me);
        end::<T::System>(Ending::Deadlock, DEADLOCK_STATUS)
    }
}

/// Reports a run that cannot go on, and ends the process with this status, or lets it stay as it is for somebody to look at.
///
/// # Safety
/// The caller holds the token, which nobody gets back.
unsafe fn end<P: Platform>(ending: Ending, status: i32) -> ! {
    // SAFETY: by the caller's promise.
    unsafe {
        in_process::conclude::<P>(ending);
        finalise::<P>(ending);
        P::before_exit(status);
        if (*run::<P>()).settings.hold != 0 {
            P::set_running(false);
            P::hold();
        }
    }
    P::exit_now(status)
}

/// A limit of steps is reached: ends the process, unless its only thread that can run has made progress of another kind, or
/// time may pass.
///
/// # Safety
/// The caller holds the token and is about to choose.
#[cold]
pub(crate) unsafe fn stop_at_step_limit<P: Platform>() {
    // SAFETY: by the caller's promise.
    unsafe {
        let run = run::<P>();
        let ready =
            |&&thread: &&*mut P::Logical| (*run).sched.thread(P::Logical::id(thread)).state == State::Ready;
        let alone = (*run).logicals.iter().filter(ready).count() <= 1;
        match (*run).limits.asks_for_time((*run).sched.steps) {
            // Whoever sleeps may be who the others look for.
            Some(Asks::Quiet) if alone && (*P::watch()).has_changed_memory() => return,
            Some(Asks::Quiet) => {
                (*run).sched.expire_first();
                return;
            }
            Some(Asks::Work) => {
                (*run).sched.expire_overdue();
                return;
            }
            None => {}
        }
        if alone && (*run).limits.only_quiet((*run).sched.steps) && (*P::watch()).has_changed_memory() {
            (*run).progressed();
            return;
        }
        stop::<P>()
    }
}

unsafe fn stop<P: Platform>() -> ! {
    // SAFETY: called by the holder of the token, before a choice.
    unsafe {
        closing::leave_the_rest::<P>();
        let run = run::<P>();
        let steps = (*run).sched.steps;
        let quiet = (*run).limits.quiet(steps);
        let ending = if quiet.is_some() { Ending::Livelock } else { Ending::StepLimit };
        if let Some(quiet) = quiet {
            P::say(format_args!("stopped after {steps} steps, {quiet} of which changed nothing"));
            inspect::tell::<P>(&Statement::Livelock(quiet));
        } else {
            P::say(format_args!("stopped after {steps} steps"));
        }
        end::<P>(ending, STEP_LIMIT_STATUS)
    }
}

/// Two accesses met that nothing orders, told in a statement and by their code; or, without them, the access was reached at
/// which the run was to end. Ends the process.
///
/// # Safety
/// The caller holds the token.
#[cold]
pub unsafe fn end_at_race<P: Platform>(race: Option<(Statement<'static>, [usize; 2])>) -> ! {
    // SAFETY: by the caller's promise; no thread runs program code after this.
    unsafe {
        if let Some((told, places)) = race {
            P::say(format_args!("{told}"));
            inspect::tell::<P>(&told);
            places.into_iter().for_each(|code| P::place(code));
        }
        P::before_race_is_told();
        end::<P>(Ending::Race, RACE_STATUS)
    }
}
