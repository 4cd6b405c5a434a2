//! What a system has to bring: how a thread is parked and woken, and what happens around a run there.
//!
//! Static dispatch throughout: a step costs what it would cost if it were written for the one system.

use waylay_accesses::Process;
use waylay_control_protocol::account::Operation;
use waylay_control_protocol::{Ending, RegionMap};
use waylay_schedule::{Event, ThreadId};
use waylay_scheduler::{Choice, Moment};

use crate::outside;
use crate::point::Waited;
use crate::run::{Run, Shared, Slot};
use crate::token::Token;

/// A logical thread of a system. The functions take pointers, because other threads may write other fields meanwhile.
pub trait Thread: Sized + 'static {
    /// Where it lives.
    type System: Stacks<Logical = Self>;

    /// Its number in the run; `u32::MAX` while it takes part in none.
    ///
    /// # Safety
    /// The thread lives.
    unsafe fn id(this: *mut Self) -> ThreadId;

    /// Whether it holds something that nobody must run into: no step of its own lets others run.
    fn is_unpreemptible(me: &Token<Self>) -> bool;

    /// Where the next one in the list of arrivals is kept.
    ///
    /// # Safety
    /// The thread lives.
    unsafe fn next_arrival(this: *mut Self) -> *mut *mut Self;

    /// It is about to begin a wait.
    #[inline]
    fn begins_to_wait(_me: &mut Token<Self>) {}
}

/// A system. `Self::Thread` of [`Process`] is a pointer to a [`Platform::Logical`].
///
/// Who calls a function is inside the library. `me` is the running thread, or who acts for it, and has the token.
pub trait Platform: Process<Thread = *mut Self::Logical> {
    /// A logical thread.
    type Logical: Thread<System = Self>;

    /// What a run has on this system only.
    type State;

    /// Where the run is kept.
    fn slot() -> &'static Slot<Run<Self>>;

    /// What threads without the token may touch.
    fn shared() -> &'static Shared<Self::Logical>;

    // Parking and waking.

    /// Passes the token to a suspended thread and waits to get it back.
    ///
    /// # Safety
    /// `next` is another thread and suspended.
    unsafe fn pass(me: &mut Token<Self::Logical>, next: *mut Self::Logical);

    /// Lets a suspended thread continue with the token, which the caller has no longer.
    ///
    /// # Safety
    /// The caller holds the token, which it has no longer; `next` is suspended.
    unsafe fn give(next: *mut Self::Logical);

    /// Nobody can run and somebody is away: lets the token float ([`float`](crate::handover::float)) and waits to get it.
    fn wait_afloat(me: &mut Token<Self::Logical>);

    /// Nobody will hold the token in a moment.
    fn before_floating(me: &mut Token<Self::Logical>);

    /// Runs `work`, which may block in the kernel, while other threads go on.
    fn excursion<R>(me: &mut Token<Self::Logical>, event: Event, work: impl FnOnce() -> R) -> R;

    /// Whether the calling kernel thread executes the holder of the token. Called by any thread, also in a handler.
    fn is_held_by_caller() -> bool;

    /// Makes this the logical thread of the calling thread; null while it is inside the library.
    fn set_me(me: *mut Self::Logical);

    /// The logical thread of the calling thread.
    fn me() -> *mut Self::Logical;

    // Around a hand-over.

    /// Another thread was chosen, and gets the token next.
    #[inline]
    fn before_pass() {}

    /// `me` has the token again.
    fn resumed(me: &mut Token<Self::Logical>);

    /// A step begins.
    #[inline]
    fn before_choice() {}

    /// The running thread began to wait for `deadline`, and the scheduler has chosen who runs; `now` is when it began.
    #[inline]
    fn time_passes(_me: &mut Token<Self::Logical>, _now: Moment, _deadline: Moment) {}

    /// Sleeps in real time where that has to be, and says how it ended.
    #[inline]
    fn sleeps_for_real(_me: &mut Token<Self::Logical>, _deadline: Moment) -> Option<Waited> {
        None
    }

    // Threads outside the schedule, and other processes.

    /// Takes something that another process may hold, which nobody here is told of.
    fn acquire_beyond<R>(
        _me: &mut Token<Self::Logical>,
        _event: Event,
        _deadline: Option<Moment>,
        _attempt: impl FnMut(&mut Token<Self::Logical>) -> Option<R>,
    ) -> Result<R, Waited> {
        unreachable!("no object is shared with other processes here")
    }

    /// Does what threads outside the schedule left word of.
    fn take_letters(me: &mut Token<Self::Logical>);

    /// Nobody can run. Looks whether somebody outside has changed that, and waits for it where that may be.
    fn ask_outside(me: &mut Token<Self::Logical>, choice: Choice) -> Choice;

    /// Whether others than the threads of the run may end a wait: then nobody can say that nothing ever changes.
    fn may_be_awaited(_me: &mut Token<Self::Logical>) -> bool {
        false
    }

    /// Looks at what the kernel knows before threads are given up.
    #[inline]
    fn look_before_closing(_me: &mut Token<Self::Logical>) {}

    /// A run begins or ends, for threads outside.
    fn set_running(running: bool) {
        outside::set_running(running);
    }

    // Runs.

    /// The calling thread as the main thread of runs, and what a run has on this system only.
    ///
    /// # Safety
    /// No run has begun in the process.
    unsafe fn make_ready(region: &RegionMap) -> (*mut Self::Logical, Self::State);

    /// Begins to watch for threads that compute without a step.
    fn watch_computing(me: &mut Token<Self::Logical>);

    /// A run is about to begin in a process that had others.
    fn renew(me: &mut Token<Self::Logical>);

    /// Tells scheduler and tables about a thread that is in place.
    ///
    /// # Safety
    /// The thread lives as long as the run.
    unsafe fn register(me: &mut Token<Self::Logical>, thread: *mut Self::Logical);

    /// The run begins: the main thread is registered, and nothing of the program has run.
    fn begin_run(me: &mut Token<Self::Logical>);

    /// The last other thread of a run has finished, and the run is about to be counted.
    #[inline]
    fn before_end(_me: &mut Token<Self::Logical>) {}

    /// Forgets the threads of a run that is over, all of which have finished, but for the main thread.
    fn forget_threads(run: &mut Run<Self>);

    // Endings.

    /// The run is over, and about to be reported.
    fn before_report(_ending: Ending) {}

    /// A thread will be held at a race, which the driver looks for.
    fn before_race_is_told() {}

    /// Every logical thread has ended, `last` as the last.
    fn all_finished(last: &mut Token<Self::Logical>);

    /// The process is about to end with this status.
    fn before_exit(_status: i32) {}

    /// Ends the process without running anything of it.
    fn exit_now(status: i32) -> !;

    /// Waits to be killed.
    fn hold() -> !;

    // Words.

    /// Says a line on standard error.
    fn say(text: core::fmt::Arguments<'_>);

    /// Runs `work` as the library's own.
    #[inline]
    fn unmanaged<R>(work: impl FnOnce() -> R) -> R {
        work()
    }
}

/// What a system knows about the stacks of its threads and about its locks.
pub trait Stacks: Platform {
    /// The logical thread that holds what a thread waits for, where that is known.
    ///
    /// # Safety
    /// A thread waits in `pending`, whose object exists.
    unsafe fn holder(me: &mut Token<Self::Logical>, pending: Event) -> Option<ThreadId>;

    /// What the calling thread waits in, where that is known better than its event says.
    fn waits_in(_me: &mut Token<Self::Logical>) -> Option<Operation<'static>> {
        None
    }

    /// Tells [`place`](Stacks::place) of each frame of the calling thread.
    fn describe_stack(me: &mut Token<Self::Logical>);

    /// Adds the place of code to the report, unless it is our own.
    fn place(me: &mut Token<Self::Logical>, code: usize);
}
