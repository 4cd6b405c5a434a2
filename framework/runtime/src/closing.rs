//! What a run in a host leaves running.
//!
//! When the main thread has come to the end of a run, others may still be there: detached threads, a pool. They go on
//! under the schedule until they have ended. If they cannot, or if they take more steps than is reasonable, the main thread
//! goes on without them and the run counts them as left behind. `waylay_scheduler` decides which it is.

use waylay_schedule::ThreadId;
use waylay_scheduler::Choice;

use crate::handover::logical;
use crate::platform::Platform;
use crate::run::run;

/// The main thread waits for the others from now on.
///
/// # Safety
/// The main thread makes the call, with the token.
pub(crate) unsafe fn open<P: Platform>() {
    // SAFETY: by the caller's promise.
    unsafe {
        let run = run::<P>();
        (*run).limits.close((*run).sched.steps);
    }
}

/// The wait is over.
///
/// # Safety
/// As for [`open`].
pub(crate) unsafe fn close<P: Platform>() {
    // SAFETY: by the caller's promise.
    unsafe { (*run::<P>()).limits.closed() };
}

/// A choice that nobody can follow. While the main thread waits for the others, it goes on without them.
///
/// # Safety
/// The caller holds the token.
#[cold]
pub unsafe fn without_the_rest<P: Platform>(choice: Choice) -> Choice {
    // SAFETY: by the caller's promise.
    unsafe {
        if !(*run::<P>()).limits.is_closing() {
            return choice;
        }
        P::look_before_closing();
        (*run::<P>()).sched.choose_without_the_rest()
    }
}

/// The step limit is reached. If it is that of the threads that are left, the main thread goes on and the caller never
/// does; else the caller has to deal with it.
///
/// # Safety
/// The caller holds the token and is not the main thread.
#[cold]
pub(crate) unsafe fn leave_the_rest<P: Platform>() {
    // SAFETY: by the caller's promise; the process makes no further run, so that the strategy is not asked.
    unsafe {
        let run = run::<P>();
        if (*run).limits.of_those_left((*run).sched.steps) {
            let me = logical::<P>((*run).sched.current());
            (*run).sched.interrupt(ThreadId::MAIN);
            P::pass(me, logical::<P>(ThreadId::MAIN));
            unreachable!("a thread that was left behind is never chosen again");
        }
    }
}
