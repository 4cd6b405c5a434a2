//! What a run in a host leaves running.
//!
//! When the main thread has come to the end of a run, others may still be there: detached threads, a pool. They go on
//! under the schedule until they have ended. If they cannot, or if they take more steps than is reasonable, the main thread
//! goes on without them and the run counts them as left behind. `waylay_scheduler` decides which it is.

use waylay_schedule::ThreadId;
use waylay_scheduler::Choice;

use crate::platform::{Platform, Thread};
use crate::token::Token;

/// The main thread waits for the others from now on.
pub(crate) fn open<T: Thread>(main: &mut Token<T>) {
    let run = main.run();
    run.limits.close(run.sched.steps);
}

/// The wait is over.
pub(crate) fn close<T: Thread>(main: &mut Token<T>) {
    main.run().limits.closed();
}

/// A choice that nobody can follow. While the main thread waits for the others, it goes on without them.
#[cold]
pub fn without_the_rest<T: Thread>(me: &mut Token<T>, choice: Choice) -> Choice {
    if !me.run().limits.is_closing() {
        return choice;
    }
    T::System::look_before_closing(me);
    me.run().sched.choose_without_the_rest()
}

/// The step limit is reached. If it is that of the threads that are left, the main thread goes on and the caller never
/// does; else the caller has to deal with it. The process makes no further run, so that the strategy is not asked.
#[cold]
pub(crate) fn leave_the_rest<T: Thread>(me: &mut Token<T>) {
    let run = me.run();
    if run.limits.of_those_left(run.sched.steps) {
        run.sched.interrupt(ThreadId::MAIN);
        let main = me.logical(ThreadId::MAIN);
        // SAFETY: the main thread waits for the others, of whom the caller is one.
        unsafe { T::System::pass(me, main) };
        unreachable!("a thread that was left behind is never chosen again");
    }
}
