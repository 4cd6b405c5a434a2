//! What interposed functions call: the operations of the running thread, as the scheduler knows them.
//!
//! Every function here is called by the thread it is about, with the token, and returns with the token: other
//! threads may have run in between.

use core::sync::atomic::Ordering;

use waylay_schedule::{Event, EventKind, ObjectId};

use waylay_scheduler::{Acquire, Choice, Key, Moment, Outcome, Shares};

use crate::ending;
use crate::handover::{follow, take_arrivals};
use crate::platform::{Platform, Thread};
use crate::run::run;

/// How a wait that may fail ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// What was waited for happened.
    Done,
    /// The deadline came first.
    TimedOut,
    /// The thread was asked to end, or handled a signal, or somebody ended the wait for another reason.
    Interrupted,
}

/// An event on the object at an address.
#[inline]
pub fn event_at(kind: EventKind, key: Key) -> Event {
    Event::new(kind, ObjectId(key.0 as u64))
}

/// One step: others may run, then `me` does what it announced.
///
/// # Safety
/// `me` executes the call and holds the token.
#[inline]
pub unsafe fn step<T: Thread>(me: *mut T, event: Event) {
    // SAFETY: by the caller's promise.
    unsafe {
        if T::is_unpreemptible(me) {
            return;
        }
        before_choice::<T::System>();
        let run = run::<T::System>();
        if event.kind.is_progress() {
            (*run).progressed();
        }
        let next = (*run).sched.step(event);
        if next != T::id(me) {
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
pub unsafe fn acquire<T: Thread, R>(
    me: *mut T,
    event: Event,
    key: Key,
    shares: Shares,
    deadline: Option<Moment>,
    free: impl Fn() -> bool,
    mut attempt: impl FnMut() -> Option<R>,
) -> Result<R, Waited> {
    // SAFETY: by the caller's promise.
    unsafe {
        before_choice::<T::System>();
        let run = run::<T::System>();
        (*run).progressed();
        let mut may = free();
        if may
            && T::is_unpreemptible(me)
            && let Some(result) = attempt()
        {
            return Ok(result);
        }
        loop {
            T::begins_to_wait(me);
            let choice = if may {
                Choice::Run((*run).sched.step_acquire(event, key, shares, deadline))
            } else {
                (*run).sched.wait(event, key, shares, deadline, None)
            };
            if choice != Choice::Run(T::id(me)) || !may {
                follow(me, choice);
                match (*run).sched.take_outcome(T::id(me)) {
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

/// Waits to be woken.
///
/// # Safety
/// `me` executes the call and holds the token.
pub unsafe fn wait<T: Thread>(
    me: *mut T,
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
        count_look::<T::System>();
        let run = run::<T::System>();
        (*run).progressed();
        let now = (*run).sched.clock.now();
        T::begins_to_wait(me);
        let choice = (*run).sched.wait(event, key, shares, deadline, then);
        if let Some(deadline) = deadline {
            T::System::time_passes(now, deadline);
        }
        follow(me, choice);
        waited(me)
    }
}

/// Sleeps until a moment of virtual time.
///
/// # Safety
/// `me` executes the call and holds the token.
pub unsafe fn sleep<T: Thread>(me: *mut T, deadline: Moment) -> Waited {
    // SAFETY: by the caller's promise.
    unsafe {
        T::begins_to_wait(me);
        if let Some(waited) = T::System::sleeps_for_real(me, deadline) {
            return waited;
        }
        let run = run::<T::System>();
        let now = (*run).sched.clock.now();
        before_choice::<T::System>();
        let choice = (*run).sched.sleep(deadline);
        T::System::time_passes(now, deadline);
        follow(me, choice);
        waited(me)
    }
}

/// Lets others run instead of a thread that computes without a step.
///
/// # Safety
/// `me` executes the call and holds the token.
pub unsafe fn give_way<T: Thread>(me: *mut T) {
    /// Yields until somebody else is chosen; strategies lower a thread that idles with some probability each time.
    const YIELDS: u32 = 1000;
    // SAFETY: by the caller's promise.
    unsafe {
        let run = run::<T::System>();
        let switches = (*run).sched.switches;
        for _ in 0..YIELDS {
            (*run).region.report().forced.fetch_add(1, Ordering::Relaxed);
            step(me, Event::local(EventKind::Yield));
            if (*run).sched.switches != switches {
                break;
            }
        }
    }
}

/// Runs `work`, which may block in the kernel, while others go on.
///
/// # Safety
/// `me` executes the call and holds the token; `work` touches nothing of the run.
pub unsafe fn away<T: Thread, R>(me: *mut T, event: Event, work: impl FnOnce() -> R) -> R {
    // SAFETY: by the caller's promise.
    unsafe {
        before_choice::<T::System>();
        let run = run::<T::System>();
        (*run).progressed();
        (*run).region.report().excursions.fetch_add(1, Ordering::Relaxed);
        T::System::excursion(me, event, work)
    }
}

#[inline]
unsafe fn before_choice<P: Platform>() {
    // SAFETY: called with the token.
    unsafe {
        if P::shared().attention.load(Ordering::Relaxed) {
            pay_attention::<P>();
        }
        count_look::<P>();
    }
}

#[inline]
unsafe fn count_look<P: Platform>() {
    // SAFETY: called with the token.
    unsafe {
        let run = run::<P>();
        (*run).looks = 0;
        P::before_choice();
        if (*run).limits.are_reached((*run).sched.steps) {
            ending::stop_at_step_limit::<P>();
        }
    }
}

#[cold]
unsafe fn pay_attention<P: Platform>() {
    P::shared().attention.store(false, Ordering::SeqCst);
    // SAFETY: called with the token.
    unsafe {
        take_arrivals::<P>();
        P::take_letters();
    }
}

unsafe fn waited<T: Thread>(me: *mut T) -> Waited {
    // SAFETY: called with the token.
    match unsafe { (*run::<T::System>()).sched.take_outcome(T::id(me)) } {
        Outcome::Woken => Waited::Done,
        Outcome::TimedOut => Waited::TimedOut,
        Outcome::Interrupted => Waited::Interrupted,
    }
}
