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
use super::{finalise, leaving, lifecycle, outside, pool, preempt, session};
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
    unsafe fn is_unpreemptible(this: *mut Logical) -> bool {
        // SAFETY: by the caller's promise.
        unsafe { (*this).unpreemptible > 0 }
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

    unsafe fn pass(me: *mut Logical, next: *mut Logical) {
        // SAFETY: by the caller's promise.
        unsafe {
            Windows::give(next);
            (*me).baton().wait();
        }
    }

    unsafe fn give(next: *mut Logical) {
        // SAFETY: the token goes to `next`; after the signal nothing of it is touched.
        unsafe {
            HOLDER.store((*next).number, Ordering::Relaxed);
            (*next).baton().raise();
        }
    }

    unsafe fn wait_afloat(me: *mut Logical) {
        // SAFETY: by the caller's promise.
        unsafe {
            float(me);
            (*me).baton().wait();
        }
    }

    unsafe fn before_floating() {
        HOLDER.store(0, Ordering::Relaxed);
    }

    unsafe fn excursion<R>(me: *mut Logical, event: Event, work: impl FnOnce() -> R) -> R {
        // SAFETY: by the caller's promise.
        unsafe {
            let choice = (*runtime()).sched.leave(event);
            dispatch(me, choice);
            let result = work();
            arrive(me);
            (*me).baton().wait();
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
    unsafe fn resumed(_: *mut Logical) {
        // SAFETY: by the caller's promise.
        unsafe { leaving::see_off() };
    }

    #[inline]
    fn before_choice() {
        preempt::note_step();
    }

    unsafe fn take_letters() {
        // SAFETY: by the caller's promise.
        unsafe { outside::take_letters(outside::NOBODY) };
    }

    unsafe fn ask_outside(choice: Choice) -> Choice {
        // SAFETY: by the caller's promise.
        unsafe { outside::ask_outsiders(choice) }
    }

    unsafe fn make_ready(region: &RegionMap) -> (*mut Logical, State) {
        session::make_ready(region)
    }

    unsafe fn watch_computing() {
        // SAFETY: by the caller's promise.
        unsafe { preempt::start((*runtime()).settings.preempt_ms, (*runtime()).repeats) };
    }

    unsafe fn renew() {
        pool::renew();
    }

    unsafe fn register(thread: *mut Logical) {
        // SAFETY: by the caller's promise.
        unsafe { lifecycle::register(thread) };
    }

    unsafe fn begin_run() {
        // SAFETY: by the caller's promise.
        unsafe { watch::begin_run() };
        outside::set_running(true);
        watch_end();
    }

    unsafe fn before_end() {
        // SAFETY: by the caller's promise.
        unsafe { leaving::see_off() };
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
    unsafe fn all_finished(last: *mut Logical) {
        // SAFETY: by the caller's promise.
        unsafe {
            finalise::<Windows>(Ending::Exited);
            preempt::end((*last).result);
        }
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
