//! Passing the token on: whom a choice gives it, and what happens when nobody can have it.
//!
//! When nobody can run and somebody is away, the token *floats*: the thread that arrives first takes it. The store
//! of `floating` and the look at `arrivals` (giver), and the push to `arrivals` and the swap of `floating`
//! (arriving thread) are sequentially consistent, so at least one of the two sees the other.

use core::sync::atomic::Ordering;

use waylay_control_protocol::Statement;
use waylay_scheduler::{Choice, State};

use crate::closing::without_the_rest;
use crate::platform::{Platform, Thread};
use crate::token::Token;
use crate::{ending, inspect};

/// Follows a choice made by thread `me`; returns when `me` has the token again.
#[inline]
pub fn follow<T: Thread>(me: &mut Token<T>, mut choice: Choice) {
    if matches!(choice, Choice::Idle | Choice::Deadlock) {
        choice = without_the_rest(me, choice);
        choice = T::System::ask_outside(me, choice);
    }
    if me.run().sched.takes_first_hurry() {
        inspect::note(me, &Statement::Hurried);
    }
    match choice {
        Choice::Run(next) if next == me.id() => return,
        Choice::Run(next) => {
            T::System::before_pass();
            let next = me.logical(next);
            // SAFETY: whom the scheduler chooses is suspended, unless it is the one that runs.
            unsafe { T::System::pass(me, next) };
        }
        Choice::Idle => T::System::wait_afloat(me),
        Choice::Deadlock | Choice::Finished => ending::deadlock(me),
    }
    resumed(me);
}

/// Gives the token to the chosen thread and does not wait for it to come back.
///
/// # Safety
/// The caller has the token no longer, acts for `me`, and does not execute on what [`Platform::give`] wakes another thread on.
pub unsafe fn dispatch<T: Thread>(me: &mut Token<T>, mut choice: Choice) {
    // A thread on its way into the kernel must not wait here for others to come out.
    let id = me.id();
    let leaving = me.run().sched.thread(id).state == State::Away;
    if matches!(choice, Choice::Idle | Choice::Deadlock) {
        choice = without_the_rest(me, choice);
        if !leaving {
            choice = T::System::ask_outside(me, choice);
        }
    }
    match choice {
        // SAFETY: whom the scheduler chooses is suspended; nothing of the run is touched once the token is gone.
        Choice::Run(next) => unsafe { T::System::give(me.logical(next)) },
        // SAFETY: by the caller's promise.
        Choice::Idle => unsafe { float(me) },
        Choice::Deadlock => ending::deadlock(me),
        Choice::Finished => T::System::all_finished(me),
    }
}

/// Lets go of the token, for the thread that arrives first: perhaps one that has arrived already.
///
/// # Safety
/// As for [`dispatch`].
pub unsafe fn float<T: Thread>(me: &mut Token<T>) {
    let shared = T::System::shared();
    T::System::before_floating(me);
    me.run().note_awaits(true);
    shared.floating.store(true, Ordering::SeqCst);
    if !shared.arrivals.load(Ordering::SeqCst).is_null() && shared.floating.swap(false, Ordering::SeqCst) {
        me.run().note_awaits(false);
        take_arrivals(me);
        let choice = me.run().sched.choose();
        // SAFETY: the token was taken back, and by the caller's promise.
        unsafe { dispatch(me, choice) };
    }
}

/// Tells the scheduler about threads that came back.
#[cold]
pub fn take_arrivals<T: Thread>(me: &mut Token<T>) {
    let mut at = T::System::shared().arrivals.swap(core::ptr::null_mut(), Ordering::Acquire);
    while !at.is_null() {
        // SAFETY: whoever is in the list waits to be chosen and stays where it is.
        let (next, id) = unsafe { (*T::next_arrival(at), T::id(at)) };
        me.run().sched.arrive(id);
        at = next;
    }
}

/// Announces that `me` is back, without the token.
///
/// # Safety
/// `me` is away and executed by nobody but its own kernel thread, which makes this call and then waits.
pub unsafe fn arrive<T: Thread>(me: *mut T) {
    let shared = T::System::shared();
    // SAFETY: until it is in the list, `me` belongs to the caller; who finds the token floating has it.
    unsafe {
        let mut head = shared.arrivals.load(Ordering::Relaxed);
        loop {
            *T::next_arrival(me) = head;
            match shared.arrivals.compare_exchange_weak(head, me, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => head = now,
            }
        }
        shared.attention.store(true, Ordering::SeqCst);
        if shared.floating.swap(false, Ordering::SeqCst) {
            let me = Token::held_by(me);
            me.run().note_awaits(false);
            take_arrivals(me);
            let choice = me.run().sched.choose();
            dispatch(me, choice);
        }
    }
}

/// What a thread does first when it has the token again.
#[inline]
pub fn resumed<T: Thread>(me: &mut Token<T>) {
    loop {
        let inspector = T::System::shared().inspector.load(Ordering::Relaxed);
        if inspector.is_null() {
            break;
        }
        // SAFETY: the inspector passed the token for a description.
        unsafe { inspect::describe_and_return(me, inspector) };
    }
    T::System::resumed(me);
}
