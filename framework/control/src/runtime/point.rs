//! What interposed functions call: the operations of the running thread, as the scheduler knows them.
//!
//! Every function here is called by the thread it is about, with the token, and returns with the token: other
//! threads may have run in between.

use core::sync::atomic::Ordering;

use waylay_schedule::{Event, EventKind, ObjectId};

use super::descriptors::look_outside;
use super::handover::{excursion, follow, take_arrivals};
use super::idling::{self, time_passes};
use super::logical::Logical;
use super::outside::{has_children, take_letters};
use super::signals::Handled;
use super::{SHARED, ending, runtime};
use crate::sched::{Acquire, Choice, Key, Moment, Outcome, Shares};
use crate::sys;

/// How a wait that may fail ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    /// What was waited for happened.
    Done,
    /// The deadline came first.
    TimedOut,
    /// The thread was asked to end, or handled a signal.
    Interrupted,
}

/// An event on the object at an address.
#[inline]
pub(crate) fn event_at(kind: EventKind, key: Key) -> Event {
    Event::new(kind, ObjectId(key.0 as u64))
}

/// One step: others may run, then `me` does what it announced.
///
/// # Safety
/// `me` executes the call and holds the token.
#[inline]
pub(crate) unsafe fn step(me: *mut Logical, event: Event) {
    // SAFETY: by the caller's promise.
    unsafe {
        if (*me).unpreemptible > 0 {
            return;
        }
        before_choice();
        if event.kind.is_progress() {
            (*runtime()).limits.progressed((*runtime()).sched.steps);
        }
        let next = (*runtime()).sched.step(event);
        if next != (*me).id {
            follow(me, Choice::Run(next));
        }
    }
}

/// Takes something that may not be free: announces it, lets others run, waits while it is not `free`, and calls
/// `attempt` when it may be.
///
/// # Safety
/// `me` executes the call and holds the token.
#[inline]
pub(crate) unsafe fn acquire<R>(
    me: *mut Logical,
    event: Event,
    key: Key,
    shares: Shares,
    deadline: Option<Moment>,
    free: impl Fn() -> bool,
    mut attempt: impl FnMut() -> Option<R>,
) -> Result<R, Waited> {
    // SAFETY: by the caller's promise.
    unsafe {
        before_choice();
        (*runtime()).limits.progressed((*runtime()).sched.steps);
        let mut may = free();
        if may
            && (*me).unpreemptible > 0
            && let Some(result) = attempt()
        {
            return Ok(result);
        }
        loop {
            (*me).handled = Handled::Nothing;
            let choice = if may {
                Choice::Run((*runtime()).sched.step_acquire(event, key, shares, deadline))
            } else {
                (*runtime()).sched.wait(event, key, shares, deadline, None)
            };
            if choice != Choice::Run((*me).id) || !may {
                follow(me, choice);
                match outcome(me) {
                    Outcome::Woken => {}
                    Outcome::TimedOut => return Err(Waited::TimedOut),
                    Outcome::Interrupted => return Err(Waited::Interrupted),
                }
            }
            if let Some(result) = attempt() {
                return Ok(result);
            }
            // Held by a thread outside our control, or by `me` itself: wait until somebody frees it.
            may = false;
        }
    }
}

/// Real pauses between two looks at what only others than us change.
const SHORTEST_NS: u64 = 50_000;
const LONGEST_NS: u64 = 1_000_000;

/// Takes something that another process may hold, which nobody here is told of: it is tried again and again, with real
/// pauses in between in which others run.
///
/// # Safety
/// `me` executes the call and holds the token.
pub(crate) unsafe fn acquire_from_outside<R>(
    me: *mut Logical,
    event: Event,
    deadline: Option<Moment>,
    mut attempt: impl FnMut() -> Option<R>,
) -> Result<R, Waited> {
    // SAFETY: called by the running thread.
    unsafe {
        step(me, event);
        let patience = deadline.map(|deadline| deadline.0.saturating_sub((*runtime()).sched.clock.now().0));
        let (begun, mut length) = (sys::monotonic_ns(), SHORTEST_NS);
        loop {
            if let Some(result) = attempt() {
                return Ok(result);
            }
            if patience.is_some_and(|patience| sys::monotonic_ns() - begun >= patience) {
                deadline.into_iter().for_each(|deadline| (*runtime()).sched.clock.advance_to(deadline));
                return Err(Waited::TimedOut);
            }
            pause(me, length);
            length = (2 * length).min(LONGEST_NS);
        }
    }
}

/// Lets real time pass for something outside, and others run if they can; for a short while only in that case.
unsafe fn pause(me: *mut Logical, nanoseconds: u64) {
    // SAFETY: called by the running thread.
    unsafe {
        let alone = (*runtime()).sched.is_alone();
        look_outside(if alone { nanoseconds } else { nanoseconds.min(SHORTEST_NS) });
        take_arrivals();
        step(me, Event::local(EventKind::Yield));
    }
}

/// Waits to be woken.
///
/// # Safety
/// `me` executes the call and holds the token.
pub(crate) unsafe fn wait(
    me: *mut Logical,
    event: Event,
    key: Key,
    shares: Shares,
    deadline: Option<Moment>,
    then: Option<Acquire>,
) -> Waited {
    // SAFETY: by the caller's promise.
    unsafe {
        // No letters here: the caller has looked at the object already, and a wake-up posted since then is for `me`.
        // Taken now, it would find nobody waiting; it is taken with the next choice.
        count_look();
        (*runtime()).limits.progressed((*runtime()).sched.steps);
        let now = (*runtime()).sched.clock.now();
        (*me).handled = Handled::Nothing;
        let choice = (*runtime()).sched.wait(event, key, shares, deadline, then);
        if let Some(deadline) = deadline {
            time_passes(now, deadline);
        }
        follow(me, choice);
        waited(me)
    }
}

/// Sleeps until a moment of virtual time.
///
/// # Safety
/// `me` executes the call and holds the token.
pub(crate) unsafe fn sleep(me: *mut Logical, deadline: Moment) -> Waited {
    // SAFETY: by the caller's promise.
    unsafe {
        let now = (*runtime()).sched.clock.now();
        (*me).handled = Handled::Nothing;
        if has_children() {
            // Its sleep takes as long as it says, and the two may have agreed on that.
            idling::sleeps_for_real();
            let (begun, length) = (sys::monotonic_ns(), deadline.0.saturating_sub(now.0));
            loop {
                let slept = sys::monotonic_ns() - begun;
                if slept >= length {
                    break;
                }
                pause(me, (length - slept).min(LONGEST_NS));
                if (*me).handled != Handled::Nothing {
                    return Waited::Interrupted;
                }
            }
            (*runtime()).sched.clock.advance_to(deadline);
            return Waited::Done;
        }
        before_choice();
        let choice = (*runtime()).sched.sleep(deadline);
        time_passes(now, deadline);
        follow(me, choice);
        waited(me)
    }
}

/// What `key` names was taken: those who want one of `shares` have to wait now.
///
/// # Safety
/// The caller holds the token.
#[inline]
pub(crate) unsafe fn taken(key: Key, shares: Shares) {
    // SAFETY: by the caller's promise.
    unsafe { (*runtime()).sched.taken(key, shares) }
}

/// What `key` names is free for those who want one of `shares`.
///
/// # Safety
/// The caller holds the token.
#[inline]
pub(crate) unsafe fn freed(key: Key, shares: Shares) {
    // SAFETY: by the caller's promise.
    unsafe { (*runtime()).sched.freed(key, shares) }
}

/// Wakes up to `count` waiting threads; returns how many there were.
///
/// # Safety
/// The caller holds the token.
pub(crate) unsafe fn wake(key: Key, count: u32, shares: Shares) -> u32 {
    // SAFETY: by the caller's promise.
    unsafe { (*runtime()).sched.wake(key, count, shares) }
}

/// Wakes up to `count` waiting threads and lets up to `moved` more wait for `to` instead; returns how many there were.
///
/// # Safety
/// The caller holds the token.
pub(crate) unsafe fn wake_or_move(key: Key, count: u32, to: Key, moved: u32) -> u32 {
    // SAFETY: by the caller's promise.
    unsafe {
        let woken = wake(key, count, Shares::ALL);
        woken + (*runtime()).sched.requeue(key, to, moved)
    }
}

/// How many threads wait for `key`.
///
/// # Safety
/// The caller holds the token.
pub(crate) unsafe fn waiting_on(key: Key) -> u32 {
    // SAFETY: by the caller's promise.
    unsafe { (*runtime()).sched.waiting_on(key) }
}

/// Ends the wait of a thread, if it waits.
///
/// # Safety
/// The caller holds the token; `thread` has not finished.
pub(crate) unsafe fn interrupt(thread: *mut Logical) {
    // SAFETY: by the caller's promise.
    unsafe { (*runtime()).sched.interrupt((*thread).id) };
}

/// Ends the wait of a thread, or the next one that it begins: it is to end there.
///
/// # Safety
/// The caller holds the token; `thread` has not finished.
pub(crate) unsafe fn call_off(thread: *mut Logical) {
    // SAFETY: by the caller's promise.
    unsafe { (*runtime()).sched.call_off((*thread).id) };
}

/// Runs `work`, which may block in the kernel, while others go on.
///
/// # Safety
/// `me` executes the call and holds the token; `work` touches nothing of the runtime.
pub(crate) unsafe fn away<R>(me: *mut Logical, event: Event, work: impl FnOnce() -> R) -> R {
    // SAFETY: by the caller's promise.
    unsafe {
        before_choice();
        (*runtime()).limits.progressed((*runtime()).sched.steps);
        (*runtime()).region.report().excursions.fetch_add(1, Ordering::Relaxed);
        excursion(me, event, work)
    }
}

#[inline]
unsafe fn before_choice() {
    // SAFETY: called with the token.
    unsafe {
        if SHARED.attention.load(Ordering::Relaxed) {
            pay_attention();
        }
        count_look();
    }
}

#[inline]
unsafe fn count_look() {
    // SAFETY: called with the token.
    unsafe {
        let runtime = runtime();
        (*runtime).looks = 0;
        if (*runtime).limits.are_reached((*runtime).sched.steps) {
            ending::stop_at_step_limit();
        }
    }
}

#[cold]
unsafe fn pay_attention() {
    SHARED.attention.store(false, Ordering::SeqCst);
    // SAFETY: called with the token.
    unsafe {
        take_arrivals();
        take_letters();
    }
}

unsafe fn outcome(me: *mut Logical) -> Outcome {
    // SAFETY: called with the token.
    unsafe { (*runtime()).sched.take_outcome((*me).id) }
}

unsafe fn waited(me: *mut Logical) -> Waited {
    // SAFETY: called with the token.
    match unsafe { outcome(me) } {
        Outcome::Woken => Waited::Done,
        Outcome::TimedOut => Waited::TimedOut,
        Outcome::Interrupted => Waited::Interrupted,
    }
}
