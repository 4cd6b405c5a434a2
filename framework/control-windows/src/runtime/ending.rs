//! How a run ends, and what the driver reads about it.

use core::sync::atomic::Ordering;

use waylay_control_protocol::{DEADLOCK_STATUS, Ending, RACE_STATUS, STEP_LIMIT_STATUS};

use windows_sys::Win32::System::Threading::GetCurrentThreadId;

use super::logical::Logical;
use super::{closing, in_process, inspect, outside, preempt, runtime};
use crate::me::set_me;
use crate::sys::{self, say};

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
    // SAFETY: called by the holder of the token, which nobody gets back.
    if unsafe { (*runtime()).settings.hold != 0 } {
        outside::set_running(false);
        sys::hold();
    }
    sys::exit_now(status)
}

/// The step limit is reached: ends the process.
#[cold]
pub(super) fn stop_at_step_limit() -> ! {
    // SAFETY: called by the holder of the token, before a choice.
    unsafe {
        closing::leave_the_rest();
        say(format_args!("stopped after {} steps", (*runtime()).sched.steps));
        in_process::conclude(Ending::StepLimit);
        finalise(Ending::StepLimit);
    }
    leave(STEP_LIMIT_STATUS)
}

/// A race ends the process, or the access at which it was to end.
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
        (*runtime()).region.report().held_thread.store(GetCurrentThreadId(), Ordering::Relaxed);
        in_process::conclude(Ending::Race);
        finalise(Ending::Race);
    }
    leave(RACE_STATUS)
}

/// Every logical thread has ended, and the system ends the process with the last of its threads.
///
/// # Safety
/// The caller holds the token, and `last` is the last logical thread.
pub(super) unsafe fn all_finished(last: *mut Logical) {
    // SAFETY: by the caller's promise.
    unsafe {
        finalise(Ending::Exited);
        preempt::end((*last).result);
    }
    set_me(core::ptr::null_mut());
}
