//! Passing the token between the carrier and the homes.
//!
//! Four cases, by where the giver and the taker sit. On the carrier a fiber must not be resumed elsewhere before
//! its registers are saved, so what concerns other kernel threads is noted in [`Afterwards`] and done by whoever
//! executes next on the carrier. Who is chosen, and what a floating token is, is in `waylay_runtime::handover`.

use waylay_runtime::closing::without_the_rest;
use waylay_runtime::ending;
use waylay_runtime::handover::{arrive, dispatch, float, resumed};
use waylay_schedule::Event;

use super::descriptors::ask_outside;
use super::logical::{Logical, Place};
use super::{Token, preempt, runtime};
use crate::instrument::patch::trap;
use crate::instrument::{delay, edge};
use crate::me::as_program;
use crate::sched::Choice;
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

/// Passes the token to a suspended thread and waits to get it back.
///
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
                (*runtime()).system.carrier.afterwards.give = next;
                leave_carrier(me);
            }
            (Place::Home, _) => wait_at_home(me, || start(next)),
        }
    }
}

/// Lets the token float and waits to get it.
pub(super) fn wait_afloat(me: &mut Token) {
    let thread = me.thread();
    // SAFETY: who has the token lives, and sits where it says.
    unsafe {
        if (*thread).place == Place::Carrier {
            me.run().system.carrier.afterwards.float = thread;
            leave_carrier(thread);
        } else {
            wait_at_home(thread, || float(me));
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
                preempt::held_by((*runtime()).system.carrier.kernel_id);
                (*runtime()).system.carrier.next = next;
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
        switch(&raw mut (*me).context, &raw const (*runtime()).system.carrier.idle);
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
        let afterwards = &raw mut (*runtime()).system.carrier.afterwards;
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
        let afterwards = core::mem::replace(&mut (*runtime()).system.carrier.afterwards, Afterwards::NOTHING);
        if !afterwards.release.is_null() {
            (*afterwards.release).homeward.raise();
        }
        if !afterwards.give.is_null() {
            give(afterwards.give);
        } else if !afterwards.float.is_null() {
            float(Token::held_by(afterwards.float));
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
            resumed(Token::held_by(me));
        }
    }
}

/// Runs `work`, which may block in the kernel, while other threads go on.
pub(super) fn excursion<R>(token: &mut Token, event: Event, work: impl FnOnce() -> R) -> R {
    snapshot::cannot_undo("waits in the kernel");
    let mut choice = token.run().sched.leave(event);
    if matches!(choice, Choice::Idle | Choice::Deadlock) {
        choice = without_the_rest(token, choice);
        if choice == Choice::Deadlock {
            // Only a signal could bring `me` back, and nobody else can run.
            choice = ask_outside(token, choice);
        }
        if choice == Choice::Deadlock {
            ending::deadlock(token);
        }
    }
    let me = token.thread();
    // SAFETY: who has the token lives. Once it is given away, nothing of the run is touched before it is back; `work` cannot
    // reach it.
    unsafe {
        if (*me).place == Place::Home {
            dispatch(token, choice);
            let cancelled = Cancelled(me);
            let result = work();
            core::mem::forget(cancelled);
            wait_at_home(me, || arrive(me));
            resumed(token);
            return result;
        }
        let carrier = &raw mut (*runtime()).system.carrier;
        (*carrier).afterwards.release = me;
        match choice {
            Choice::Run(next) if (*token.logical(next)).place == Place::Carrier => {
                switch(&raw mut (*me).context, &raw const (*token.logical(next)).context);
            }
            Choice::Run(next) => {
                (*carrier).afterwards.give = token.logical(next);
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
        resumed(token);
        result
    }
}

/// Moves the running thread to its own kernel thread for good; it keeps the token.
pub(crate) fn demote_me(me: &mut Token) {
    let me = me.thread();
    // SAFETY: the thread has the token, and keeps it; the carrier's loop releases the home once the fiber is saved.
    unsafe {
        if (*me).place == Place::Home {
            return;
        }
        snapshot::cannot_undo(
            "needs a thread to be on its own kernel thread: for a signal, its mask, or its end",
        );
        (*me).place = Place::Home;
        preempt::held_by((*me).kernel_id);
        let carrier = &raw mut (*runtime()).system.carrier;
        (*carrier).afterwards.release = me;
        switch(&raw mut (*me).context, &raw const (*carrier).idle);
        if let Some(stack) = (*me).alternate_stack.take() {
            sys::call(libc::SYS_sigaltstack, [&raw const stack as usize, 0, 0, 0, 0, 0]);
        }
        sys::swap_signal_mask(trap::to_block((*me).mask));
    }
}

/// Makes a call that the kernel interrupts with handlers of these signals, if with any: program code that runs on the
/// thread, and could have run at another of its steps.
pub(crate) fn in_handlers<R>(me: &mut Token, signals: u64, call: impl FnOnce() -> R) -> R {
    delay::drain(me);
    // SAFETY: who has the token lives.
    unsafe { (*me.thread()).handlers += 1 };
    edge::interrupted(me, signals);
    let result = as_program(me, call);
    edge::goes_on(me, signals);
    // SAFETY: as above.
    unsafe { (*me.thread()).handlers -= 1 };
    result
}
