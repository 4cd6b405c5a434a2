//! Linux, as the controlled run needs it.

use core::sync::atomic::AtomicU32;

use waylay_control_protocol::{Ending, RegionMap, Switching};
use waylay_runtime::{Platform, Run, Shared, Slot, Thread};
use waylay_schedule::{Event, ThreadId};

use super::logical::Logical;
use super::signals::{Handled, raise_pending};
use super::{
    Token, Waited, carrier, descriptors, handover, idling, inside, lifecycle, outside, patience, pool, preempt,
    session, signals, waiters, watcher,
};
use crate::heap::{guard, strict};
use crate::instrument::{self, Linux};
use crate::interpose::{cancellation_point, forget_timers};
use crate::me::{Unmanaged, me, set_me};
use crate::message::say;
use crate::sched::{ByAddress, Choice, Moment};
use crate::{snapshot, sys};

/// What a run has on Linux only.
pub(crate) struct State {
    /// How threads are switched.
    pub(crate) switching: Switching,
    /// By `pthread_t`.
    pub(crate) handles: ByAddress<usize, *mut Logical>,
    pub(crate) carrier: carrier::Carrier,
    pub(crate) watches: Vec<descriptors::Watch>,
    pub(crate) inside: inside::Inside,
    /// Threads that wait for several words at once.
    pub(crate) several: Vec<waiters::Several>,
    /// How long threads have only slept while the outside world was awaited.
    pub(crate) idling: idling::Idling,
    /// Signals to the process that every thread blocks: bit n-1 is signal n.
    pub(crate) held: u64,
    /// Signals of timers that would end the process.
    pub(crate) overdue: Vec<(i32, signals::Origin)>,
    /// Signals on their way.
    pub(crate) sent: Vec<signals::Sent>,
    /// Threads that wait for another routine.
    pub(crate) pool: Vec<*mut Logical>,
}

pub(crate) static SHARED: Shared<Logical> = Shared::new();
static RUN: Slot<Run<Linux>> = Slot::new();
/// A created kernel thread has reached its place.
pub(super) static STARTED: AtomicU32 = AtomicU32::new(0);

/// The run.
///
/// # Safety
/// The caller holds the token, a run has begun, and no borrow of the result lives across a handover.
#[inline(always)]
pub(crate) unsafe fn runtime() -> *mut Run<Linux> {
    // SAFETY: the slot is filled before the first logical thread exists and never emptied.
    unsafe { RUN.get() }
}

impl Thread for Logical {
    type System = Linux;

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

    #[inline(always)]
    fn begins_to_wait(me: &mut Token) {
        // SAFETY: who has the token lives.
        unsafe { (*me.thread()).handled = Handled::Nothing };
    }
}

impl Platform for Linux {
    type Logical = Logical;
    type State = State;

    #[inline(always)]
    fn slot() -> &'static Slot<Run<Linux>> {
        &RUN
    }

    #[inline(always)]
    fn shared() -> &'static Shared<Logical> {
        &SHARED
    }

    #[inline]
    unsafe fn pass(me: &mut Token, next: *mut Logical) {
        // SAFETY: by the caller's promise.
        unsafe { handover::pass(me.thread(), next) };
    }

    unsafe fn give(next: *mut Logical) {
        // SAFETY: by the caller's promise.
        unsafe { handover::start(next) };
    }

    fn wait_afloat(me: &mut Token) {
        handover::wait_afloat(me);
    }

    fn before_floating(me: &mut Token) {
        preempt::held_by(0);
        let run = me.run();
        if !run.system.watches.is_empty() || run.sched.has_deadlines() {
            watcher::watch();
        }
    }

    fn excursion<R>(me: &mut Token, event: Event, work: impl FnOnce() -> R) -> R {
        handover::excursion(me, event, work)
    }

    fn is_held_by_caller() -> bool {
        preempt::is_held_by_caller()
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
    fn before_pass() {
        if guard::is_on() {
            guard::look();
        }
    }

    #[inline]
    fn resumed(me: &mut Token) {
        instrument::resumed(me);
        // SAFETY: who has the token lives.
        let (signals, ends) = unsafe {
            let me = me.thread();
            ((*me).pending_signals, (*me).cancels_anywhere && (*me).cancelled)
        };
        if signals != 0 {
            raise_pending(me);
        }
        // SAFETY: as above; a handler may have changed it.
        let ends =
            ends || signals != 0 && unsafe { (*me.thread()).cancels_anywhere && (*me.thread()).cancelled };
        if ends {
            cancellation_point(me);
        }
    }

    #[inline]
    fn time_passes(me: &mut Token, now: Moment, deadline: Moment) {
        idling::time_passes(me, now, deadline);
    }

    #[inline]
    fn sleeps_for_real(me: &mut Token, deadline: Moment) -> Option<Waited> {
        patience::sleeps_for_real(me, deadline)
    }

    fn acquire_beyond<R>(
        me: &mut Token,
        event: Event,
        deadline: Option<Moment>,
        attempt: impl FnMut(&mut Token) -> Option<R>,
    ) -> Result<R, Waited> {
        patience::acquire_from_outside(me, event, deadline, attempt)
    }

    fn take_letters(me: &mut Token) {
        outside::take_letters(me);
    }

    fn ask_outside(me: &mut Token, choice: Choice) -> Choice {
        descriptors::ask_outside(me, choice)
    }

    fn may_be_awaited(me: &mut Token) -> bool {
        outside::may_be_awaited(me)
    }

    fn look_before_closing(me: &mut Token) {
        descriptors::descriptors_changed(me);
    }

    fn set_running(running: bool) {
        outside::set_running(running);
    }

    unsafe fn make_ready(region: &RegionMap) -> (*mut Logical, State) {
        session::make_ready(region)
    }

    fn watch_computing(me: &mut Token) {
        preempt::start(me.run().settings.preempt_ms);
    }

    fn renew(_: &mut Token) {
        pool::notice_modules();
    }

    unsafe fn register(me: &mut Token, thread: *mut Logical) {
        // SAFETY: by the caller's promise.
        unsafe { lifecycle::register(me, thread) };
    }

    fn begin_run(me: &mut Token) {
        instrument::begin_run(me);
        // Most runs follow nothing, and allocate as fast as they would without us.
        strict::control_while(instrument::edge::follows() || instrument::delay::is_on());
        outside::set_running(true);
        me.run().system.inside.begin();
        forget_timers(me);
    }

    fn forget_threads(run: &mut Run<Linux>) {
        pool::forget_threads(run);
    }

    fn before_report(ending: Ending) {
        if ending == Ending::Exited {
            guard::look_at_all();
        }
    }

    /// libc ends the process with its last thread, but our carrier is one too.
    fn all_finished(me: &mut Token) {
        super::finalise(me, Ending::Exited);
        set_me(core::ptr::null_mut());
        if me.run().system.carrier.running {
            // SAFETY: plain call.
            unsafe { libc::exit(0) };
        }
    }

    fn before_exit(status: i32) {
        snapshot::exits(status);
    }

    fn exit_now(status: i32) -> ! {
        sys::exit_now(status)
    }

    fn hold() -> ! {
        loop {
            // SAFETY: plain call.
            unsafe { sys::call(libc::SYS_pause, [0; 6]) };
        }
    }

    fn say(text: core::fmt::Arguments<'_>) {
        say(text);
    }

    fn unmanaged<R>(work: impl FnOnce() -> R) -> R {
        let _unmanaged = Unmanaged::enter();
        work()
    }
}
