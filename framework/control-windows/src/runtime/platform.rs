//! Windows, as the controlled run needs it.

use core::sync::atomic::{AtomicU32, Ordering};

use waylay_control_protocol::{Ending, RegionMap};
use waylay_runtime::handover::{arrive, dispatch, float, resumed};
use waylay_runtime::{Platform, Run, Shared, Slot, Thread};
use waylay_schedule::{Event, ThreadId};
use waylay_scheduler::{ByAddress, Choice};
use windows_sys::Win32::Foundation::HANDLE;
use windows_sys::Win32::System::Threading::GetCurrentThreadId;

use super::logical::Logical;
use super::{Token, finalise, leaving, lifecycle, outside, pool, preempt, session};
use crate::interpose::{Handles, Mutexes};
use crate::me::{me, set_me, watch_end};
use crate::sys;
use crate::watch::{self, Windows};

/// What a run has on Windows only.
pub(crate) struct State {
    /// By the system's number of the thread.
    pub(crate) by_number: ByAddress<usize, *mut Logical>,
    /// What the handles of the program are.
    pub(crate) handles: Handles,
    /// Places that are being initialised once, and by whom.
    pub(crate) initialising: Vec<(usize, *mut Logical)>,
    /// Who holds the mutexes of POSIX threads.
    pub(crate) mutexes: Mutexes,
    /// A thread that has finished and is on its way out; whoever runs next waits until it is gone.
    pub(crate) leaving: HANDLE,
}

pub(crate) static SHARED: Shared<Logical> = Shared::new();
static RUN: Slot<Run<Windows>> = Slot::new();
/// The system's number of the thread that holds the token.
pub(super) static HOLDER: AtomicU32 = AtomicU32::new(0);

/// The run.
///
/// # Safety
/// The caller holds the token, a run has begun, and no borrow of the result lives across a handover.
#[inline(always)]
pub(crate) unsafe fn runtime() -> *mut Run<Windows> {
    // SAFETY: the slot is filled before the first logical thread exists and never emptied.
    unsafe { RUN.get() }
}

impl Thread for Logical {
    type System = Windows;

    #[inline(always)]
    unsafe fn id(this: *mut Logical) -> ThreadId {
        // SAFETY: by the caller's promise.
        unsafe { (*this).id }
    }

    #[inline(always)]
    fn is_unpreemptible(me: &Token) -> bool {
        // SAFETY: who has the token lives.
        unsafe { (*me.thread()).unpreemptible > 0 }
    }

    #[inline]
    unsafe fn next_arrival(this: *mut Logical) -> *mut *mut Logical {
        // SAFETY: by the caller's promise.
        unsafe { &raw mut (*this).next_arrival }
    }
}

impl Platform for Windows {
    type Logical = Logical;
    type State = State;

    #[inline(always)]
    fn slot() -> &'static Slot<Run<Windows>> {
        &RUN
    }

    #[inline(always)]
    fn shared() -> &'static Shared<Logical> {
        &SHARED
    }

    unsafe fn pass(me: &mut Token, next: *mut Logical) {
        // SAFETY: by the caller's promise; who has the token lives.
        unsafe {
            Windows::give(next);
            (*me.thread()).baton().wait();
        }
    }

    unsafe fn give(next: *mut Logical) {
        // SAFETY: the token goes to `next`; after the signal nothing of it is touched.
        unsafe {
            HOLDER.store((*next).number, Ordering::Relaxed);
            (*next).baton().raise();
        }
    }

    fn wait_afloat(me: &mut Token) {
        // SAFETY: who has the token lives, and waits to get it back.
        unsafe {
            float(me);
            (*me.thread()).baton().wait();
        }
    }

    fn before_floating(_: &mut Token) {
        HOLDER.store(0, Ordering::Relaxed);
    }

    fn excursion<R>(me: &mut Token, event: Event, work: impl FnOnce() -> R) -> R {
        let choice = me.run().sched.leave(event);
        // SAFETY: nothing of the run is touched before the token is back; `work` cannot reach it.
        unsafe {
            dispatch(me, choice);
            let result = work();
            arrive(me.thread());
            (*me.thread()).baton().wait();
            resumed(me);
            result
        }
    }

    fn is_held_by_caller() -> bool {
        // SAFETY: plain call.
        unsafe { GetCurrentThreadId() == HOLDER.load(Ordering::Relaxed) }
    }

    #[inline(always)]
    fn set_me(me: *mut Logical) {
        set_me(me);
    }

    #[inline(always)]
    fn me() -> *mut Logical {
        me()
    }

    #[inline]
    fn resumed(me: &mut Token) {
        leaving::see_off(me);
    }

    #[inline]
    fn before_choice() {
        preempt::note_step();
    }

    fn take_letters(me: &mut Token) {
        outside::take_letters(me, outside::NOBODY);
    }

    fn ask_outside(me: &mut Token, choice: Choice) -> Choice {
        outside::ask_outsiders(me, choice)
    }

    unsafe fn make_ready(region: &RegionMap) -> (*mut Logical, State) {
        session::make_ready(region)
    }

    fn watch_computing(me: &mut Token) {
        preempt::start(me.run().settings.preempt_ms, me.run().repeats);
    }

    fn renew(_: &mut Token) {
        pool::renew();
    }

    unsafe fn register(me: &mut Token, thread: *mut Logical) {
        // SAFETY: by the caller's promise.
        unsafe { lifecycle::register(me, thread) };
    }

    fn begin_run(me: &mut Token) {
        watch::begin_run(me);
        outside::set_running(true);
        watch_end();
    }

    fn before_end(me: &mut Token) {
        leaving::see_off(me);
    }

    fn forget_threads(run: &mut Run<Windows>) {
        for &thread in run.logicals.iter().filter(|&&thread| thread != run.main) {
            // SAFETY: every thread but the main one has finished and is gone, and nobody has a pointer to it once the tables
            // are cleared.
            drop(unsafe { Box::from_raw(thread) });
        }
        run.logicals.clear();
        run.system.by_number.clear();
        run.system.handles.forget();
        run.system.initialising.clear();
        run.system.mutexes.forget();
    }

    fn before_race_is_told() {
        // SAFETY: called with the token.
        unsafe { (*runtime()).region.report().held_thread.store(GetCurrentThreadId(), Ordering::Relaxed) };
    }

    /// The system ends the process with the last of its threads.
    fn all_finished(last: &mut Token) {
        finalise(last, Ending::Exited);
        // SAFETY: who has the token lives.
        preempt::end(unsafe { (*last.thread()).result });
        set_me(core::ptr::null_mut());
    }

    fn exit_now(status: i32) -> ! {
        sys::exit_now(status)
    }

    fn hold() -> ! {
        sys::hold()
    }

    fn say(text: core::fmt::Arguments<'_>) {
        sys::say(text);
    }
}
