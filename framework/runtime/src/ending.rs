//! How a run ends, and what the driver reads about it.

use core::sync::atomic::Ordering;

use waylay_control_protocol::{DEADLOCK_STATUS, Ending, RACE_STATUS, STEP_LIMIT_STATUS, Statement};
use waylay_scheduler::{Asks, State};

use crate::platform::{Platform, Stacks, Thread};
use crate::token::Token;
use crate::{closing, in_process, inspect};

/// Writes the numbers of the run and how it ended; the first ending stays.
pub fn finalise<T: Thread>(me: &mut Token<T>, ending: Ending) {
    if me.run().region.report().ending.load(Ordering::Relaxed) != Ending::Unfinished as u32 {
        return;
    }
    T::System::before_report(ending);
    let run = me.run();
    let in_the_past = run.series.is_in_the_past();
    run.sched.report_into(&run.region, in_the_past);
    run.region.report().ending.store(ending as u32, Ordering::Release);
}

/// Nobody can run, ever: reports every thread and ends the process.
#[cold]
pub fn deadlock<T: Thread>(me: &mut Token<T>) -> ! {
    let (live, steps) = (me.run().sched.live(), me.run().sched.steps);
    T::System::say(format_args!("deadlock after {steps} steps: {live} threads, none can run"));
    inspect::tell(me, &Statement::Deadlock(live));
    // SAFETY: no thread runs program code after this.
    unsafe { inspect::describe_all(me) };
    end(me, Ending::Deadlock, DEADLOCK_STATUS)
}

/// Nobody can run, and what is not under control has not changed that for a while: whether it would have is not known, so the run
/// ends without a verdict.
#[cold]
pub fn give_up_waiting<T: Thread>(me: &mut Token<T>) -> ! {
    let steps = me.run().sched.steps;
    T::System::say(format_args!("stopped after {steps} steps: what is not under control was awaited"));
    end(me, Ending::Awaiting, STEP_LIMIT_STATUS)
}

/// Reports a run that cannot go on, and ends the process with this status, or lets it stay as it is for somebody to look at.
fn end<T: Thread>(me: &mut Token<T>, ending: Ending, status: i32) -> ! {
    in_process::conclude(me, ending);
    finalise(me, ending);
    T::System::before_exit(status);
    if me.run().settings.hold != 0 {
        T::System::set_running(false);
        T::System::hold();
    }
    T::System::exit_now(status)
}

/// A limit of steps is reached, before a choice: ends the process, unless its only thread that can run has made progress of
/// another kind, or time may pass.
#[cold]
pub(crate) fn stop_at_step_limit<T: Thread>(me: &mut Token<T>) {
    let run = me.run();
    // SAFETY: threads in the list live as long as the run.
    let ready = |&&thread: &&*mut T| run.sched.thread(unsafe { T::id(thread) }).state == State::Ready;
    let alone = run.logicals.iter().filter(ready).count() <= 1;
    let asks = run.limits.asks_for_time(run.sched.steps);
    match asks {
        // Whoever sleeps may be who the others look for.
        Some(Asks::Quiet) if alone && me.watch().has_changed_memory() => return,
        Some(Asks::Quiet) => {
            if me.run().all_look() {
                me.run().looking.forget();
                me.run().sched.expire_first();
            }
            return;
        }
        Some(Asks::Work) => {
            me.run().sched.expire_overdue();
            return;
        }
        None => {}
    }
    let run = me.run();
    if alone && run.limits.only_quiet(run.sched.steps) && me.watch().has_changed_memory() {
        me.run().progressed();
        return;
    }
    stop(me)
}

fn stop<T: Thread>(me: &mut Token<T>) -> ! {
    closing::leave_the_rest(me);
    let steps = me.run().sched.steps;
    let quiet = me.run().limits.quiet(steps).filter(|_| !T::System::may_be_awaited(me));
    let ending = if quiet.is_some() { Ending::Livelock } else { Ending::StepLimit };
    if let Some(quiet) = quiet {
        T::System::say(format_args!("stopped after {steps} steps, {quiet} of which changed nothing"));
        inspect::tell(me, &Statement::Livelock(quiet));
    } else {
        T::System::say(format_args!("stopped after {steps} steps"));
    }
    end(me, ending, STEP_LIMIT_STATUS)
}

/// Two accesses met that nothing orders, told in a statement and by their code; or, without them, the access was reached at
/// which the run was to end. Ends the process.
#[cold]
pub fn end_at_race<T: Thread>(me: &mut Token<T>, race: Option<(Statement<'static>, [usize; 2])>) -> ! {
    if let Some((told, places)) = race {
        T::System::say(format_args!("{told}"));
        inspect::tell(me, &told);
        places.into_iter().for_each(|code| T::System::place(me, code));
    }
    T::System::before_race_is_told();
    end(me, Ending::Race, RACE_STATUS)
}
