//! What interposed functions call: the operations of the running thread, as the scheduler knows them.
//!
//! Every function here is given the token of the thread that it is about, and returns with the token: other
//! threads may have run in between.

use core::sync::atomic::Ordering;

use waylay_schedule::{Event, EventKind, ObjectId};

use waylay_scheduler::{Acquire, Choice, Key, Moment, Outcome, Shares};

use crate::ending;
use crate::handover::{follow, take_arrivals};
use crate::platform::{Platform, Thread};
use crate::token::Token;

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
#[inline]
pub fn step<T: Thread>(me: &mut Token<T>, event: Event) {
    if T::is_unpreemptible(me) {
        return;
    }
    before_choice(me);
    let run = me.run();
    if event.kind.is_progress() {
        run.progressed();
    }
    let next = run.sched.step(event);
    if next != me.id() {
        follow(me, Choice::Run(next));
    }
}

/// Takes something that may not be free: announces it, lets others run, waits while it is not `free`, and calls
/// `attempt` when it may be.
#[inline]
pub fn acquire<T: Thread, R>(
    me: &mut Token<T>,
    event: Event,
    key: Key,
    shares: Shares,
    deadline: Option<Moment>,
    free: impl Fn(&mut Token<T>) -> bool,
    mut attempt: impl FnMut(&mut Token<T>) -> Option<R>,
) -> Result<R, Waited> {
    before_choice(me);
    me.run().progressed();
    let mut may = free(me);
    if may
        && T::is_unpreemptible(me)
        && let Some(result) = attempt(me)
    {
        return Ok(result);
    }
    loop {
        T::begins_to_wait(me);
        let sched = &mut me.run().sched;
        let choice = if may {
            Choice::Run(sched.step_acquire(event, key, shares, deadline))
        } else {
            sched.wait(event, key, shares, deadline, None)
        };
        if choice != Choice::Run(me.id()) || !may {
            follow(me, choice);
            match waited(me) {
                Waited::Done => {}
                ended => return Err(ended),
            }
        }
        if let Some(result) = attempt(me) {
            return Ok(result);
        }
        // Held by a thread outside our control, or by `me` itself: wait until somebody frees it.
        may = false;
    }
}

/// Waits to be woken.
pub fn wait<T: Thread>(
    me: &mut Token<T>,
    event: Event,
    key: Key,
    shares: Shares,
    deadline: Option<Moment>,
    then: Option<Acquire>,
) -> Waited {
    // No letters here: the caller has looked at the object already, and a wake-up posted since then is for `me`.
    // Taken now, it would find nobody waiting; it is taken with the next choice.
    count_look(me);
    me.run().progressed();
    let now = me.run().sched.clock.now();
    T::begins_to_wait(me);
    let choice = me.run().sched.wait(event, key, shares, deadline, then);
    if let Some(deadline) = deadline {
        T::System::time_passes(me, now, deadline);
    }
    follow(me, choice);
    waited(me)
}

/// Sleeps until a moment of virtual time.
pub fn sleep<T: Thread>(me: &mut Token<T>, deadline: Moment) -> Waited {
    T::begins_to_wait(me);
    if let Some(waited) = T::System::sleeps_for_real(me, deadline) {
        return waited;
    }
    let now = me.run().sched.clock.now();
    before_choice(me);
    let choice = me.run().sched.sleep(deadline);
    T::System::time_passes(me, now, deadline);
    follow(me, choice);
    waited(me)
}

/// Lets others run instead of a thread that computes without a step.
pub fn give_way<T: Thread>(me: &mut Token<T>) {
    /// Yields until somebody else is chosen; strategies lower a thread that idles with some probability each time.
    const YIELDS: u32 = 1000;
    let switches = me.run().sched.switches;
    for _ in 0..YIELDS {
        me.run().region.report().forced.fetch_add(1, Ordering::Relaxed);
        step(me, Event::local(EventKind::Yield));
        if me.run().sched.switches != switches {
            break;
        }
    }
}

/// Runs `work`, which may block in the kernel, while others go on.
pub fn away<T: Thread, R>(me: &mut Token<T>, event: Event, work: impl FnOnce() -> R) -> R {
    before_choice(me);
    let run = me.run();
    run.progressed();
    run.region.report().excursions.fetch_add(1, Ordering::Relaxed);
    T::System::excursion(me, event, work)
}

#[inline]
fn before_choice<T: Thread>(me: &mut Token<T>) {
    if T::System::shared().attention.load(Ordering::Relaxed) {
        pay_attention(me);
    }
    count_look(me);
}

#[inline]
fn count_look<T: Thread>(me: &mut Token<T>) {
    let run = me.run();
    run.looks = 0;
    T::System::before_choice();
    if run.limits.are_reached(run.sched.steps) {
        ending::stop_at_step_limit(me);
    }
}

#[cold]
fn pay_attention<T: Thread>(me: &mut Token<T>) {
    T::System::shared().attention.store(false, Ordering::SeqCst);
    take_arrivals(me);
    T::System::take_letters(me);
}

fn waited<T: Thread>(me: &mut Token<T>) -> Waited {
    let id = me.id();
    match me.run().sched.take_outcome(id) {
        Outcome::Woken => Waited::Done,
        Outcome::TimedOut => Waited::TimedOut,
        Outcome::Interrupted => Waited::Interrupted,
    }
}
