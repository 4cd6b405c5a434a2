//! What a run in a host leaves running.
//!
//! When the main thread has come to the end of a run, others may still be there: detached threads, a pool. They go on
//! under the schedule until they have ended. If they cannot, or if they take more steps than is reasonable, the main thread
//! goes on without them and the run counts them as left behind. `waylay_scheduler` decides which it is.

use waylay_schedule::ThreadId;

use super::handover::{logical, pass};
use super::{descriptors, runtime};
use crate::sched::Choice;

/// The main thread waits for the others from now on.
///
/// # Safety
/// The main thread makes the call, with the token.
pub(super) unsafe fn open() {
    // SAFETY: by the caller's promise.
    unsafe { (*runtime()).limits.close((*runtime()).sched.steps) };
}

/// The wait is over.
///
/// # Safety
/// As for [`open`].
pub(super) unsafe fn close() {
    // SAFETY: by the caller's promise.
    unsafe { (*runtime()).limits.closed() };
}

/// A choice that nobody can follow. While the main thread waits for the others, it goes on without them.
///
/// # Safety
/// The caller holds the token.
#[cold]
pub(super) unsafe fn without_the_rest(choice: Choice) -> Choice {
    // SAFETY: by the caller's promise.
    unsafe {
        if !(*runtime()).limits.is_closing() {
            return choice;
        }
        descriptors::descriptors_changed();
        (*runtime()).sched.choose_without_the_rest()
    }
}

/// The step limit is reached. If it is that of the threads that are left, the main thread goes on and the caller never
/// does; else the caller has to deal with it.
///
/// # Safety
/// The caller holds the token and is not the main thread.
#[cold]
pub(super) unsafe fn leave_the_rest() {
    // SAFETY: by the caller's promise; the process makes no further run, so that the strategy is not asked.
    unsafe {
        let runtime = runtime();
        if (*runtime).limits.of_those_left((*runtime).sched.steps) {
            let me = logical((*runtime).sched.current());
            (*runtime).sched.interrupt(ThreadId::MAIN);
            pass(me, logical(ThreadId::MAIN));
            unreachable!("a thread that was left behind is never chosen again");
        }
    }
}
