//! Passing the token on: whom a choice gives it, and what happens when nobody can have it.
//!
//! When nobody can run and somebody is away, the token *floats*: the thread that arrives first takes it. The store
//! of `floating` and the look at `arrivals` (giver), and the push to `arrivals` and the swap of `floating`
//! (arriving thread) are sequentially consistent, so at least one of the two sees the other.

use core::sync::atomic::Ordering;

use waylay_control_protocol::Statement;
use waylay_schedule::ThreadId;
use waylay_scheduler::{Choice, State};

use crate::closing::without_the_rest;
use crate::platform::{Platform, Thread};
use crate::run::run;
use crate::{ending, inspect};

/// Follows a choice made by thread `me`; returns when `me` has the token again.
///
/// # Safety
/// `me` executes the call and holds the token.
#[inline]
pub unsafe fn follow<T: Thread>(me: *mut T, mut choice: Choice) {
    // SAFETY: by the caller's promise; `me` and every listed logical thread stay valid for the run.
    unsafe {
        if matches!(choice, Choice::Idle | Choice::Deadlock) {
            choice = T::System::ask_outside(without_the_rest::<T::System>(choice));
        }
        if (*run::<T::System>()).sched.takes_first_hurry() {
            inspect::note::<T::System>(&Statement::Hurried);
        }
        match choice {
            Choice::Run(next) if next == T::id(me) => return,
            Choice::Run(next) => {
                T::System::before_pass();
                T::System::pass(me, logical::<T::System>(next));
            }
            Choice::Idle => T::System::wait_afloat(me),
            Choice::Deadlock | Choice::Finished => ending::deadlock(me),
        }
        resumed(me);
    }
}

/// Gives the token to the chosen thread and does not wait for it to come back.
///
/// # Safety
/// The caller holds the token, acts for `me`, and does not execute on what [`Platform::give`] wakes another thread on.
pub unsafe fn dispatch<T: Thread>(me: *mut T, mut choice: Choice) {
    // SAFETY: as in `follow`; nothing of the run is touched once the token is gone.
    unsafe {
        // A thread on its way into the kernel must not wait here for others to come out.
        let leaving = (*run::<T::System>()).sched.thread(T::id(me)).state == State::Away;
        if matches!(choice, Choice::Idle | Choice::Deadlock) {
            choice = without_the_rest::<T::System>(choice);
            if !leaving {
                choice = T::System::ask_outside(choice);
            }
        }
        match choice {
            Choice::Run(next) => T::System::give(logical::<T::System>(next)),
            Choice::Idle => float(me),
            Choice::Deadlock => ending::deadlock(me),
            Choice::Finished => T::System::all_finished(me),
        }
    }
}

/// The thread with this number.
///
/// # Safety
/// The caller holds the token.
#[inline]
pub unsafe fn logical<P: Platform>(thread: ThreadId) -> *mut P::Logical {
    // SAFETY: the scheduler only names threads that were added together with their entry here.
    unsafe { (&(*run::<P>()).logicals)[thread.index()] }
}

/// Lets go of the token, for the thread that arrives first: perhaps one that has arrived already.
///
/// # Safety
/// The caller holds the token and acts for `me`, as for [`dispatch`].
pub unsafe fn float<T: Thread>(me: *mut T) {
    let shared = T::System::shared();
    // SAFETY: still with the token.
    unsafe { T::System::before_floating() };
    shared.floating.store(true, Ordering::SeqCst);
    if !shared.arrivals.load(Ordering::SeqCst).is_null() && shared.floating.swap(false, Ordering::SeqCst) {
        // SAFETY: the token was taken back.
        unsafe {
            take_arrivals::<T::System>();
            dispatch(me, (*run::<T::System>()).sched.choose());
        }
    }
}

/// Tells the scheduler about threads that came back.
///
/// # Safety
/// The caller holds the token.
#[cold]
pub unsafe fn take_arrivals<P: Platform>() {
    let mut at = P::shared().arrivals.swap(core::ptr::null_mut(), Ordering::Acquire);
    // SAFETY: whoever is in the list waits to be chosen and stays where it is.
    unsafe {
        while !at.is_null() {
            let next = *P::Logical::next_arrival(at);
            (*run::<P>()).sched.arrive(P::Logical::id(at));
            at = next;
        }
    }
}

/// Announces that `me` is back, without the token.
///
/// # Safety
/// `me` is away and executed by nobody but its own kernel thread, which makes this call and then waits.
pub unsafe fn arrive<T: Thread>(me: *mut T) {
    let shared = T::System::shared();
    // SAFETY: until it is in the list, `me` belongs to the caller.
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
            take_arrivals::<T::System>();
            dispatch(me, (*run::<T::System>()).sched.choose());
        }
    }
}

/// What a thread does first when it has the token again.
///
/// # Safety
/// `me` executes the call and holds the token.
#[inline]
pub unsafe fn resumed<T: Thread>(me: *mut T) {
    loop {
        let inspector = T::System::shared().inspector.load(Ordering::Relaxed);
        if inspector.is_null() {
            break;
        }
        // SAFETY: the inspector passed the token for a description.
        unsafe { inspect::describe_and_return(me, inspector) };
    }
    // SAFETY: by the caller's promise.
    unsafe { T::System::resumed(me) };
}
