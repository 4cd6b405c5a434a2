//! Passing the token on.
//!
//! When nobody can run and somebody is away, the token *floats*: the thread that arrives first takes it. The store of
//! `floating` and the look at `arrivals` (giver), and the push to `arrivals` and the swap of `floating` (arriving thread)
//! are sequentially consistent, so at least one of the two sees the other.

use core::sync::atomic::Ordering;

use waylay_schedule::{Event, ThreadId};
use waylay_scheduler::{Choice, State};
use windows_sys::Win32::Foundation::{CloseHandle, WAIT_OBJECT_0};
use windows_sys::Win32::System::Threading::{GetThreadId, WaitForSingleObject};

use super::closing::without_the_rest;
use super::logical::Logical;
use super::outside::ask_outsiders;
use super::{SHARED, ending, inspect, outside, runtime};

/// Real milliseconds that a finished thread may take to leave the process. It runs what modules do at the end of a thread;
/// should that wait for a thread of the run, the run has to go on.
const LAST_WORDS: u32 = 2000;

/// Follows a choice made by thread `me`; returns when `me` has the token again.
///
/// # Safety
/// `me` executes the call and holds the token.
#[inline]
pub(super) unsafe fn follow(me: *mut Logical, mut choice: Choice) {
    // SAFETY: by the caller's promise; `me` and every listed logical thread stay valid for the run.
    unsafe {
        if matches!(choice, Choice::Idle | Choice::Deadlock) {
            choice = ask_outsiders(without_the_rest(choice));
        }
        match choice {
            Choice::Run(next) if next == (*me).id => return,
            Choice::Run(next) => give(logical(next)),
            Choice::Idle => float(me),
            Choice::Deadlock | Choice::Finished => ending::deadlock(me),
        }
        (*me).baton().wait();
        resumed(me);
    }
}

/// Gives the token to the chosen thread and does not wait for it to come back.
///
/// # Safety
/// The caller holds the token and acts for `me`.
pub(super) unsafe fn dispatch(me: *mut Logical, mut choice: Choice) {
    // SAFETY: as in `follow`; nothing of the runtime is touched once the token is gone.
    unsafe {
        // A thread on its way into the kernel must not wait here for others to come out.
        let leaving = (*runtime()).sched.thread((*me).id).state == State::Away;
        if matches!(choice, Choice::Idle | Choice::Deadlock) {
            choice = without_the_rest(choice);
            if !leaving {
                choice = ask_outsiders(choice);
            }
        }
        match choice {
            Choice::Run(next) => give(logical(next)),
            Choice::Idle => float(me),
            Choice::Deadlock => ending::deadlock(me),
            Choice::Finished => ending::all_finished(me),
        }
    }
}

/// The thread with this number.
///
/// # Safety
/// The caller holds the token.
pub(super) unsafe fn logical(thread: ThreadId) -> *mut Logical {
    // SAFETY: the scheduler only names threads that were added together with their entry here.
    unsafe { (&(*runtime()).logicals)[thread.index()] }
}

/// Passes the token to a suspended thread and waits to get it back.
///
/// # Safety
/// `me` executes the call and holds the token; `next` is another thread and suspended.
pub(super) unsafe fn pass(me: *mut Logical, next: *mut Logical) {
    // SAFETY: by the caller's promise.
    unsafe {
        give(next);
        (*me).baton().wait();
    }
}

/// Lets a suspended thread continue with the token.
///
/// # Safety
/// The caller holds the token, and `next` is suspended.
pub(super) unsafe fn give(next: *mut Logical) {
    // SAFETY: the token goes to `next`; after the signal nothing of it is touched.
    unsafe {
        SHARED.holder.store((*next).number, Ordering::Relaxed);
        (*next).baton().raise();
    }
}

unsafe fn float(me: *mut Logical) {
    SHARED.holder.store(0, Ordering::Relaxed);
    SHARED.floating.store(true, Ordering::SeqCst);
    if !SHARED.arrivals.load(Ordering::SeqCst).is_null() && SHARED.floating.swap(false, Ordering::SeqCst) {
        // SAFETY: the token was taken back.
        unsafe {
            take_arrivals();
            dispatch(me, (*runtime()).sched.choose());
        }
    }
}

/// Tells the scheduler about threads that came back.
///
/// # Safety
/// The caller holds the token.
#[cold]
pub(super) unsafe fn take_arrivals() {
    let mut at = SHARED.arrivals.swap(core::ptr::null_mut(), Ordering::Acquire);
    // SAFETY: whoever is in the list waits to be chosen and stays where it is.
    unsafe {
        while !at.is_null() {
            let next = (*at).next_arrival;
            (*runtime()).sched.arrive((*at).id);
            at = next;
        }
    }
}

/// Announces that `me` is back, without the token.
unsafe fn arrive(me: *mut Logical) {
    // SAFETY: until it is in the list, `me` belongs to the caller.
    unsafe {
        let mut head = SHARED.arrivals.load(Ordering::Relaxed);
        loop {
            (*me).next_arrival = head;
            match SHARED.arrivals.compare_exchange_weak(head, me, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => head = now,
            }
        }
        SHARED.attention.store(true, Ordering::SeqCst);
        if SHARED.floating.swap(false, Ordering::SeqCst) {
            take_arrivals();
            dispatch(me, (*runtime()).sched.choose());
        }
    }
}

/// Runs `work`, which may block in the kernel, while other threads go on.
///
/// # Safety
/// `me` executes the call and holds the token; `work` touches nothing of the runtime.
pub(super) unsafe fn excursion<R>(me: *mut Logical, event: Event, work: impl FnOnce() -> R) -> R {
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

/// What a thread does first when it has the token again.
///
/// # Safety
/// `me` executes the call and holds the token.
#[inline]
pub(super) unsafe fn resumed(me: *mut Logical) {
    while SHARED.inspecting.load(Ordering::Relaxed) {
        // SAFETY: whoever set the flag passed the token for a description.
        unsafe { inspect::describe_and_return(me) };
    }
    // SAFETY: by the caller's promise.
    unsafe {
        if !(*runtime()).leaving.is_null() {
            see_off();
        }
    }
}

/// Waits until the thread that finished is gone. Modules run code of their own at the end of a thread, beside the
/// schedule; this way nobody else runs meanwhile.
///
/// # Safety
/// The caller holds the token.
#[cold]
pub(super) unsafe fn see_off() {
    // SAFETY: by the caller's promise; the handle is ours.
    unsafe {
        let leaving = core::mem::replace(&mut (*runtime()).leaving, core::ptr::null_mut());
        let known = GetThreadId(leaving);
        if WaitForSingleObject(leaving, LAST_WORDS) != WAIT_OBJECT_0 {
            (*runtime()).note_uncontrolled();
        }
        outside::take_letters(known);
        CloseHandle(leaving);
        // A mutex that it held can be had by others from now on.
        (*runtime()).handles.look_at_mutexes(&mut (*runtime()).sched);
    }
}
