//! What a run in a host leaves running.
//!
//! When the main thread has come to the end of a run, others may still be there: detached threads, a pool. They go on
//! under the schedule until they have ended. If they cannot, because they wait for something that nobody will bring, or
//! if they take more steps than is reasonable, the main thread goes on without them and the run counts them as left
//! behind. A thread that waits for a lock is not idle: then it is a deadlock after all.

use core::sync::atomic::{AtomicBool, Ordering};

use waylay_control_protocol::in_process::LEFT_STEPS;
use waylay_schedule::{EventKind, ThreadId};
use waylay_scheduler::{Choice, State};

use super::handover::{logical, pass};
use super::runtime;

static CLOSING: AtomicBool = AtomicBool::new(false);

/// The main thread waits for the others from now on.
///
/// # Safety
/// The main thread makes the call, with the token.
pub(super) unsafe fn open() {
    // SAFETY: by the caller's promise.
    unsafe {
        let runtime = runtime();
        (*runtime).step_limit = (*runtime).settings.max_steps.min((*runtime).sched.steps + LEFT_STEPS);
    }
    CLOSING.store(true, Ordering::Relaxed);
}

/// The wait is over.
///
/// # Safety
/// As for [`open`].
pub(super) unsafe fn close() {
    CLOSING.store(false, Ordering::Relaxed);
    // SAFETY: by the caller's promise.
    unsafe { (*runtime()).step_limit = (*runtime()).settings.max_steps };
}

/// A choice that nobody can follow. While the main thread waits for the others, it goes on without them.
///
/// # Safety
/// The caller holds the token.
#[cold]
pub(super) unsafe fn without_the_rest(choice: Choice) -> Choice {
    if !CLOSING.load(Ordering::Relaxed) {
        return choice;
    }
    // SAFETY: by the caller's promise.
    unsafe {
        match (*runtime()).sched.choose() {
            Choice::Deadlock if somebody_waits_for_a_lock() => Choice::Deadlock,
            Choice::Idle | Choice::Deadlock => {
                (*runtime()).sched.interrupt(ThreadId::MAIN);
                (*runtime()).sched.choose()
            }
            other => other,
        }
    }
}

unsafe fn somebody_waits_for_a_lock() -> bool {
    const LOCKS: [EventKind; 3] = [EventKind::MutexLock, EventKind::RwReadLock, EventKind::RwWriteLock];
    // SAFETY: called with the token.
    unsafe {
        let sched = &(*runtime()).sched;
        (0..sched.thread_count()).any(|index| {
            let thread = sched.thread(ThreadId(index as u32));
            thread.state == State::Blocked && LOCKS.contains(&thread.pending.kind)
        })
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
        if CLOSING.load(Ordering::Relaxed) && (*runtime).sched.steps < (*runtime).settings.max_steps {
            let me = logical((*runtime).sched.current());
            (*runtime).sched.interrupt(ThreadId::MAIN);
            pass(me, logical(ThreadId::MAIN));
            unreachable!("a thread that was left behind is never chosen again");
        }
    }
}
