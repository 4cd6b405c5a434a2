//! How a run ends, and what the driver reads about it.

use core::sync::atomic::Ordering;

use waylay_control_protocol::{DEADLOCK_STATUS, Ending, RACE_STATUS, STEP_LIMIT_STATUS};

use super::logical::Logical;
use super::{closing, in_process, inspect, outside, runtime};
use crate::heap::guard;
use crate::instrument::has_changed_memory;
use crate::me::set_me;
use crate::message::say;
use crate::sched::{Asks, State};
use crate::{snapshot, sys};

/// Writes the numbers of the run and how it ended; the first ending stays.
///
/// # Safety
/// The caller holds the token.
pub(crate) unsafe fn finalise(ending: Ending) {
    // SAFETY: by the caller's promise.
    unsafe {
        let runtime = runtime();
        let report = (*runtime).region.report();
        if report.ending.load(Ordering::Relaxed) != Ending::Unfinished as u32 {
            return;
        }
        if ending == Ending::Exited {
            guard::look_at_all();
        }
        let in_the_past = (*runtime).series.is_in_the_past();
        (*runtime).sched.report_into(&(*runtime).region, in_the_past);
        report.ending.store(ending as u32, Ordering::Release);
    }
}

/// Nobody can run, ever: reports every thread and ends the process.
///
/// # Safety
/// `me` executes the call and holds the token.
#[cold]
pub(super) unsafe fn deadlock(me: *mut Logical) -> ! {
    // SAFETY: by the caller's promise; no thread runs program code after this.
    unsafe {
        let live = (*runtime()).sched.live();
        say(format_args!("deadlock after {} steps: {live} threads, none can run", (*runtime()).sched.steps));
        inspect::line(format_args!("deadlock: {live} threads, none can run"));
        inspect::describe_all(me);
        in_process::conclude(Ending::Deadlock);
        finalise(Ending::Deadlock);
    }
    leave(DEADLOCK_STATUS)
}

/// Ends the process, or lets it stay as it is for somebody to look at.
fn leave(status: i32) -> ! {
    snapshot::exits(status);
    // SAFETY: called by the holder of the token, which nobody gets back.
    if unsafe { (*runtime()).settings.hold != 0 } {
        outside::set_running(false);
        loop {
            // SAFETY: plain call.
            unsafe { sys::call(libc::SYS_pause, [0; 6]) };
        }
    }
    sys::exit_now(status)
}

/// A limit of steps is reached: ends the process, unless its only thread that can run has made progress of another kind, or
/// time may pass.
#[cold]
pub(crate) fn stop_at_step_limit() {
    // SAFETY: called by the holder of the token, before a choice.
    unsafe {
        let runtime = runtime();
        let ready = |thread: &&*mut Logical| (*runtime).sched.thread((***thread).id).state == State::Ready;
        let alone = (*runtime).logicals.iter().filter(ready).count() <= 1;
        match (*runtime).limits.asks_for_time((*runtime).sched.steps) {
            // Whoever sleeps may be who the others look for.
            Some(Asks::Quiet) if alone && has_changed_memory() => return,
            Some(Asks::Quiet) => {
                (*runtime).sched.expire_first();
                return;
            }
            Some(Asks::Work) => {
                (*runtime).sched.expire_overdue();
                return;
            }
            None => {}
        }
        if alone && (*runtime).limits.only_quiet((*runtime).sched.steps) && has_changed_memory() {
            (*runtime).limits.progressed((*runtime).sched.steps);
            return;
        }
    }
    stop()
}

fn stop() -> ! {
    // SAFETY: called by the holder of the token, before a choice.
    unsafe {
        closing::leave_the_rest();
        let steps = (*runtime()).sched.steps;
        let quiet = (*runtime()).limits.quiet(steps);
        let ending = if quiet.is_some() { Ending::Livelock } else { Ending::StepLimit };
        if let Some(quiet) = quiet {
            say(format_args!("stopped after {steps} steps, {quiet} of which changed nothing"));
            inspect::line(format_args!("livelock: threads only wait for each other, nothing changed in {quiet} steps"));
        } else {
            say(format_args!("stopped after {steps} steps"));
        }
        in_process::conclude(ending);
        finalise(ending);
    }
    leave(STEP_LIMIT_STATUS)
}

/// Two accesses met that nothing orders, told in a line and by their code; or, without them, the access was reached at
/// which the run was to end. Ends the process.
///
/// # Safety
/// The caller holds the token.
#[cold]
pub(crate) unsafe fn end_at_race(race: Option<(String, [usize; 2])>) -> ! {
    // SAFETY: by the caller's promise; no thread runs program code after this.
    unsafe {
        if let Some((text, places)) = race {
            say(format_args!("{text}"));
            inspect::line(format_args!("{text}"));
            places.into_iter().for_each(|code| inspect::place(code));
        }
        in_process::conclude(Ending::Race);
        finalise(Ending::Race);
    }
    leave(RACE_STATUS)
}

/// Every logical thread has ended. libc ends the process with its last thread, but our carrier is one too.
///
/// # Safety
/// The caller holds the token, and is the last logical thread.
pub(super) unsafe fn all_finished() {
    // SAFETY: by the caller's promise.
    unsafe {
        finalise(Ending::Exited);
        set_me(core::ptr::null_mut());
        if (*runtime()).carrier.running {
            libc::exit(0);
        }
    }
}
