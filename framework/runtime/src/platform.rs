//! What a system has to bring: how a thread is parked and woken, and what happens around a run there.
//!
//! Static dispatch throughout: a step costs what it would cost if it were written for the one system.

use waylay_accesses::Process;
use waylay_control_protocol::{Ending, RegionMap};
use waylay_schedule::{Event, ThreadId};
use waylay_scheduler::{Choice, Moment};

use crate::outside;
use crate::point::Waited;
use crate::run::{Run, Shared, Slot};

/// A logical thread of a system. The functions take pointers, because other threads may write other fields meanwhile.
pub trait Thread: Sized + 'static {
    /// Where it lives.
    type System: Platform<Logical = Self>;

    /// Its number in the run; `u32::MAX` while it takes part in none.
    ///
    /// # Safety
    /// The thread lives.
    unsafe fn id(this: *mut Self) -> ThreadId;

    /// Whether it holds something that nobody must run into: no step of its own lets others run.
    ///
    /// # Safety
    /// The thread lives and executes the call.
    unsafe fn is_unpreemptible(this: *mut Self) -> bool;

    /// Where the next one in the list of arrivals is kept.
    ///
    /// # Safety
    /// The thread lives.
    unsafe fn next_arrival(this: *mut Self) -> *mut *mut Self;

    /// It is about to begin a wait.
    ///
    /// # Safety
    /// The thread executes the call and holds the token.
    #[inline]
    unsafe fn begins_to_wait(_this: *mut Self) {}
}

/// A system. `Self::Thread` of [`Process`] is a pointer to a [`Platform::Logical`].
///
/// Unless something else is said, functions are called with the token by a thread that is inside the library.
pub trait Platform: Process<Thread = *mut Self::Logical> + Stacks {
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
    /// `me` executes the call and holds the token; `next` is another thread and suspended.
    unsafe fn pass(me: *mut Self::Logical, next: *mut Self::Logical);

    /// Lets a suspended thread continue with the token, which the caller has no longer.
    ///
    /// # Safety
    /// The caller holds the token, and `next` is suspended.
    unsafe fn give(next: *mut Self::Logical);

    /// Nobody can run and somebody is away: lets the token float ([`float`](crate::handover::float)) and waits to get it.
    ///
    /// # Safety
    /// `me` executes the call and holds the token.
    unsafe fn wait_afloat(me: *mut Self::Logical);

    /// Nobody will hold the token in a moment.
    ///
    /// # Safety
    /// The caller holds the token.
    unsafe fn before_floating();

    /// Runs `work`, which may block in the kernel, while other threads go on.
    ///
    /// # Safety
    /// `me` executes the call and holds the token; `work` touches nothing of the run.
    unsafe fn excursion<R>(me: *mut Self::Logical, event: Event, work: impl FnOnce() -> R) -> R;

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
    ///
    /// # Safety
    /// `me` executes the call and holds the token.
    unsafe fn resumed(me: *mut Self::Logical);

    /// A step begins.
    #[inline]
    fn before_choice() {}

    /// The running thread began to wait for `deadline`, and the scheduler has chosen who runs; `now` is when it began.
    ///
    /// # Safety
    /// The caller holds the token.
    #[inline]
    unsafe fn time_passes(_now: Moment, _deadline: Moment) {}

    /// Sleeps in real time where that has to be, and says how it ended.
    ///
    /// # Safety
    /// `me` executes the call and holds the token.
    #[inline]
    unsafe fn sleeps_for_real(_me: *mut Self::Logical, _deadline: Moment) -> Option<Waited> {
        None
    }

    // Threads outside the schedule, and other processes.

    /// Takes something that another process may hold, which nobody here is told of.
    ///
    /// # Safety
    /// `me` executes the call and holds the token.
    unsafe fn acquire_beyond<R>(
        _me: *mut Self::Logical,
        _event: Event,
        _deadline: Option<Moment>,
        _attempt: impl FnMut() -> Option<R>,
    ) -> Result<R, Waited> {
        unreachable!("no object is shared with other processes here")
    }

    /// Does what threads outside the schedule left word of.
    ///
    /// # Safety
    /// The caller holds the token.
    unsafe fn take_letters();

    /// Nobody can run. Looks whether somebody outside has changed that, and waits for it where that may be.
    ///
    /// # Safety
    /// The caller holds the token.
    unsafe fn ask_outside(choice: Choice) -> Choice;

    /// Looks at what the kernel knows before threads are given up.
    ///
    /// # Safety
    /// The caller holds the token.
    #[inline]
    unsafe fn look_before_closing() {}

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
    ///
    /// # Safety
    /// The slot is filled.
    unsafe fn watch_computing();

    /// A run is about to begin in a process that had others.
    ///
    /// # Safety
    /// Called by the thread that drives the runs, between two of them.
    unsafe fn renew();

    /// Tells scheduler and tables about a thread that is in place.
    ///
    /// # Safety
    /// The caller holds the token.
    unsafe fn register(thread: *mut Self::Logical);

    /// The run begins: the main thread is registered, and nothing of the program has run.
    ///
    /// # Safety
    /// Called by the main thread, which is the only one so far.
    unsafe fn begin_run();

    /// The last other thread of a run has finished, and the run is about to be counted.
    ///
    /// # Safety
    /// Called by the main thread, with the token.
    #[inline]
    unsafe fn before_end() {}

    /// Forgets the threads of a run that is over, all of which have finished, but for the main thread.
    fn forget_threads(run: &mut Run<Self>);

    // Endings.

    /// The run is over, and about to be reported.
    fn before_report(_ending: Ending) {}

    /// A thread will be held at a race, which the driver looks for.
    fn before_race_is_told() {}

    /// Every logical thread has ended, `last` as the last.
    ///
    /// # Safety
    /// The caller holds the token.
    unsafe fn all_finished(last: *mut Self::Logical);

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

/// What a system knows about the stacks of its threads and about its locks. Called with the token.
pub trait Stacks {
    /// The logical thread that holds what a thread waits for, where that is known.
    ///
    /// # Safety
    /// The caller holds the token, and a thread waits in `pending`.
    unsafe fn holder(pending: Event) -> Option<ThreadId>;

    /// Tells [`place`](Stacks::place) of each frame of the calling thread.
    ///
    /// # Safety
    /// The caller holds the token.
    unsafe fn describe_stack();

    /// Adds the place of code to the report, unless it is our own.
    ///
    /// # Safety
    /// The caller holds the token.
    unsafe fn place(code: usize);
}
