//! Passing the token on.
//!
//! Four cases, by where the giver and the taker sit. On the carrier a fiber must not be resumed elsewhere before
//! its registers are saved, so what concerns other kernel threads is noted in [`Afterwards`] and done by whoever
//! executes next on the carrier.
//!
//! When nobody can run and somebody is away, the token *floats*: the thread that arrives first takes it. The store
//! of `floating` and the look at `arrivals` (giver), and the push to `arrivals` and the swap of `floating`
//! (arriving thread) are sequentially consistent, so at least one of the two sees the other.

use core::sync::atomic::Ordering;

use waylay_control_protocol::HURRIED;
use waylay_schedule::{Event, ThreadId};

use super::closing::without_the_rest;
use super::descriptors::ask_outside;
use super::logical::{Logical, Place};
use super::signals::raise_pending;
use super::{SHARED, ending, inspect, preempt, runtime, watcher};
use crate::heap::guard;
use crate::instrument::{self, edge};
use crate::instrument::patch::trap;
use crate::interpose::cancellation_point;
use crate::me::as_program;
use crate::sched::{Choice, State};
use crate::switch::switch;
use crate::{snapshot, sys};

/// What is left to do once the fiber that gave the token away is saved.
#[derive(Debug)]
pub(crate) struct Afterwards {
    /// Its home may adopt it.
    pub(crate) release: *mut Logical,
    /// This thread, at home, gets the token.
    pub(crate) give: *mut Logical,
    /// The token floats, and this thread is the one that let it go.
    pub(crate) float: *mut Logical,
}

impl Afterwards {
    pub(crate) const NOTHING: Afterwards = Afterwards {
        release: core::ptr::null_mut(),
        give: core::ptr::null_mut(),
        float: core::ptr::null_mut(),
    };
}

/// Follows a choice made by thread `me`; returns when `me` has the token again.
///
/// # Safety
/// `me` executes the call and holds the token.
#[inline]
pub(super) unsafe fn follow(me: *mut Logical, mut choice: Choice) {
    // SAFETY: by the caller's promise; `me` and every listed logical thread stay valid for the run.
    unsafe {
        if matches!(choice, Choice::Idle | Choice::Deadlock) {
            choice = ask_outside(without_the_rest(choice));
        }
        if (*runtime()).sched.takes_first_hurry() {
            inspect::note(format_args!("{HURRIED}"));
        }
        match choice {
            Choice::Run(next) if next == (*me).id => return,
            Choice::Run(next) => {
                if guard::is_on() {
                    guard::look();
                }
                pass(me, logical(next));
            }
            Choice::Idle if (*me).place == Place::Carrier => {
                (*runtime()).carrier.afterwards.float = me;
                leave_carrier(me);
            }
            Choice::Idle => wait_at_home(me, || float(me)),
            Choice::Deadlock | Choice::Finished => ending::deadlock(me),
        }
        resumed(me);
    }
}

/// Gives the token to the chosen thread and does not wait for it to come back.
///
/// # Safety
/// The caller holds the token, acts for `me`, and is not a fiber on the carrier.
pub(super) unsafe fn dispatch(me: *mut Logical, mut choice: Choice) {
    // SAFETY: as in `follow`; nothing of the runtime is touched once the token is gone.
    unsafe {
        // A thread on its way into the kernel must not wait here for others to come out.
        let leaving = (*runtime()).sched.thread((*me).id).state == State::Away;
        if matches!(choice, Choice::Idle | Choice::Deadlock) {
            choice = without_the_rest(choice);
            if !leaving {
                choice = ask_outside(choice);
            }
        }
        match choice {
            Choice::Run(next) => start(logical(next)),
            Choice::Idle => float(me),
            Choice::Deadlock => ending::deadlock(me),
            Choice::Finished => ending::all_finished(),
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

/// # Safety
/// `me` executes the call and holds the token; `next` is another thread and suspended.
#[inline]
pub(super) unsafe fn pass(me: *mut Logical, next: *mut Logical) {
    // SAFETY: `next` is suspended: it is not the running thread, and only one runs.
    unsafe {
        match ((*me).place, (*next).place) {
            (Place::Carrier, Place::Carrier) => {
                switch(&raw mut (*me).context, &raw const (*next).context);
                after_switch();
            }
            (Place::Carrier, Place::Home) => {
                (*runtime()).carrier.afterwards.give = next;
                leave_carrier(me);
            }
            (Place::Home, _) => wait_at_home(me, || start(next)),
        }
    }
}

/// Gives the token up by `give_up` and waits at home to get it back.
unsafe fn wait_at_home(me: *mut Logical, give_up: impl FnOnce()) {
    give_up();
    // SAFETY: `me` is the calling thread.
    unsafe { (*me).baton.wait() };
}

/// Lets a suspended thread continue with the token.
///
/// # Safety
/// The caller holds the token, and `next` is suspended.
pub(super) unsafe fn start(next: *mut Logical) {
    // SAFETY: the token goes to `next`; after the signal nothing of it is touched.
    unsafe {
        match (*next).place {
            Place::Carrier => {
                preempt::held_by((*runtime()).carrier.kernel_id);
                (*runtime()).carrier.next = next;
                super::carrier::wake();
            }
            Place::Home => give(next),
        }
    }
}

unsafe fn give(next: *mut Logical) {
    // SAFETY: `next` waits for exactly one of the two signals.
    unsafe {
        preempt::held_by((*next).kernel_id);
        if (*next).adoptable {
            (*next).adoptable = false;
            (*next).homeward.raise();
        } else {
            (*next).baton.raise();
        }
    }
}

/// Suspends fiber `me` and continues the carrier's own loop; returns when `me` is resumed, on whichever kernel
/// thread that is.
unsafe fn leave_carrier(me: *mut Logical) {
    // SAFETY: `me` executes on the carrier, whose loop is suspended meanwhile.
    unsafe {
        switch(&raw mut (*me).context, &raw const (*runtime()).carrier.idle);
        if (*me).place == Place::Carrier {
            after_switch();
        }
    }
}

/// Does what the fiber that ran before noted.
///
/// # Safety
/// Runs on the carrier, right after a switch.
#[inline]
pub(super) unsafe fn after_switch() {
    // SAFETY: the notes are written with the token and read by the next holder on the same kernel thread.
    unsafe {
        let afterwards = &raw mut (*runtime()).carrier.afterwards;
        let released = (*afterwards).release;
        if !released.is_null() {
            (*afterwards).release = core::ptr::null_mut();
            (*released).homeward.raise();
        }
    }
}

/// Does what the fiber that ran before noted, the part that gives the token away included.
///
/// # Safety
/// Runs on the carrier's own stack, right after a fiber switched to it. The token is gone afterwards.
pub(super) unsafe fn give_away_after_switch() {
    // SAFETY: as in `after_switch`.
    unsafe {
        let afterwards = core::mem::replace(&mut (*runtime()).carrier.afterwards, Afterwards::NOTHING);
        if !afterwards.release.is_null() {
            (*afterwards.release).homeward.raise();
        }
        if !afterwards.give.is_null() {
            give(afterwards.give);
        } else if !afterwards.float.is_null() {
            float(afterwards.float);
        }
    }
}

unsafe fn float(me: *mut Logical) {
    preempt::held_by(0);
    // SAFETY: still with the token.
    if unsafe { !(*runtime()).watches.is_empty() || (*runtime()).sched.has_deadlines() } {
        watcher::watch();
    }
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
///
/// # Safety
/// `me` is away and executed by nobody but its home thread, which makes this call and then waits.
pub(super) unsafe fn arrive(me: *mut Logical) {
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

/// Dropped where libc ends a thread inside the call that it waits in, on its own kernel thread: from there on it unwinds code
/// of the program, which needs the token.
struct Cancelled(*mut Logical);

impl Drop for Cancelled {
    fn drop(&mut self) {
        let me = self.0;
        // SAFETY: dropped by the thread that is away, which comes back to stay at home.
        unsafe {
            if (*me).place == Place::Carrier {
                (*me).place = Place::Home;
                sys::swap_signal_mask(trap::to_block((*me).mask));
            }
            (*me).cancelled = false;
            wait_at_home(me, || arrive(me));
            resumed(me);
        }
    }
}

/// Runs `work`, which may block in the kernel, while other threads go on.
///
/// # Safety
/// `me` executes the call and holds the token; `work` touches nothing of the runtime.
pub(super) unsafe fn excursion<R>(me: *mut Logical, event: Event, work: impl FnOnce() -> R) -> R {
    snapshot::cannot_undo("waits in the kernel");
    // SAFETY: by the caller's promise.
    unsafe {
        let mut choice = (*runtime()).sched.leave(event);
        if matches!(choice, Choice::Idle | Choice::Deadlock) {
            choice = without_the_rest(choice);
            if choice == Choice::Deadlock {
                // Only a signal could bring `me` back, and nobody else can run.
                choice = ask_outside(choice);
            }
            if choice == Choice::Deadlock {
                ending::deadlock(me);
            }
        }
        if (*me).place == Place::Home {
            dispatch(me, choice);
            let cancelled = Cancelled(me);
            let result = work();
            core::mem::forget(cancelled);
            wait_at_home(me, || arrive(me));
            resumed(me);
            return result;
        }
        let carrier = &raw mut (*runtime()).carrier;
        (*carrier).afterwards.release = me;
        match choice {
            Choice::Run(next) if (*logical(next)).place == Place::Carrier => {
                switch(&raw mut (*me).context, &raw const (*logical(next)).context);
            }
            Choice::Run(next) => {
                (*carrier).afterwards.give = logical(next);
                switch(&raw mut (*me).context, &raw const (*carrier).idle);
            }
            Choice::Idle | Choice::Deadlock | Choice::Finished => {
                (*carrier).afterwards.float = me;
                switch(&raw mut (*me).context, &raw const (*carrier).idle);
            }
        }
        // On the home thread, without the token.
        let cancelled = Cancelled(me);
        let result = work();
        core::mem::forget(cancelled);
        switch(&raw mut (*me).context, &raw const (*me).park);
        // On the carrier again, chosen.
        after_switch();
        resumed(me);
        result
    }
}

/// Moves the running thread to its own kernel thread for good; it keeps the token.
///
/// # Safety
/// `me` executes the call and holds the token.
pub(crate) unsafe fn demote_me(me: *mut Logical) {
    // SAFETY: by the caller's promise; the carrier's loop releases the home once the fiber is saved.
    unsafe {
        if (*me).place == Place::Home {
            return;
        }
        snapshot::cannot_undo("needs a thread to be on its own kernel thread: for a signal, its mask, or its end");
        (*me).place = Place::Home;
        preempt::held_by((*me).kernel_id);
        let carrier = &raw mut (*runtime()).carrier;
        (*carrier).afterwards.release = me;
        switch(&raw mut (*me).context, &raw const (*carrier).idle);
        if let Some(stack) = (*me).alternate_stack.take() {
            sys::call(libc::SYS_sigaltstack, [&raw const stack as usize, 0, 0, 0, 0, 0]);
        }
        sys::swap_signal_mask(trap::to_block((*me).mask));
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
    // SAFETY: `me` is the calling thread.
    unsafe {
        instrument::resumed(me);
        if (*me).pending_signals != 0 {
            raise_pending(me);
        }
        if (*me).cancels_anywhere && (*me).cancelled {
            cancellation_point(me);
        }
    }
}

/// Makes a call that the kernel interrupts with handlers of these signals, if with any: program code that runs on the
/// thread, and could have run at another of its steps.
///
/// # Safety
/// `me` executes the call and holds the token.
pub(crate) unsafe fn in_handlers<R>(me: *mut Logical, signals: u64, call: impl FnOnce() -> R) -> R {
    // SAFETY: by the caller's promise.
    unsafe {
        (*me).handlers += 1;
        edge::interrupted(me, signals);
        let result = as_program(me, call);
        edge::goes_on(me, signals);
        (*me).handlers -= 1;
        result
    }
}
