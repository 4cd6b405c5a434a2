//! Calls that synchronise nothing but are steps all the same: where memory is allocated and freed, where something is
//! written or a file is used. Races that no lock is near often lie around such a call.
//!
//! Calls that libc makes itself do not count: it makes them with its own locks held, and whoever ran into one of those
//! would wait in the kernel with the token.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use waylay_accesses::Frees;
use waylay_control_protocol::Statement;
use waylay_control_protocol::account::Actor;
use waylay_control_protocol::instrumentation::MOST_CALLS;
use waylay_schedule::{Event, EventKind};

use super::{Token, preempt, runtime, step};
use crate::instrument::delay;
use crate::me::{Unmanaged, me};

/// Whether such calls are steps. A byte, because assembly looks at it.
pub(crate) static ARE_STEPS: AtomicBool = AtomicBool::new(false);
static MADE: AtomicU32 = AtomicU32::new(0);

/// Whether such calls are steps.
#[inline(always)]
pub(crate) fn are_steps() -> bool {
    ARE_STEPS.load(Ordering::Relaxed)
}

/// They are from now on.
pub(super) fn make_steps() {
    ARE_STEPS.store(true, Ordering::Relaxed);
}

/// Code at `caller` is about to allocate.
#[inline(always)]
pub(crate) fn before_allocation(caller: usize) {
    if are_steps() {
        step_at(caller, Event::local(EventKind::Allocate));
    }
}

/// The address whose block is asked for; 0: none is.
static ASKED: AtomicUsize = AtomicUsize::new(0);

/// Whoever allocates a block with this address tells so from now on.
pub(super) fn ask_for(address: u64) {
    ASKED.store(address as usize, Ordering::Relaxed);
}

/// A block was allocated: that is told if it is the one that is asked for.
#[inline(always)]
pub(crate) fn tell_allocation(start: usize, bytes: usize) {
    let asked = ASKED.load(Ordering::Relaxed);
    if asked != 0 && (start..start.saturating_add(bytes.max(1))).contains(&asked) {
        tell_it(bytes);
    }
}

#[cold]
#[inline(never)]
fn tell_it(bytes: usize) {
    let by = whereabouts();
    if by != Whereabouts::UNKNOWN {
        // SAFETY: whoever is known has the token.
        unsafe { (*runtime()).region.tell(&Statement::Allocated(bytes as u64, by.actor())) };
    }
}

/// Code at `caller` is about to free a block, which is an address and a length, or has just done so.
pub(crate) fn at_free(caller: usize, (start, bytes): (usize, usize)) {
    if are_steps() {
        let extent = bytes.min(u32::MAX as usize) as u32;
        step_at(caller, Event::access(EventKind::Free, start as u64, extent));
    }
}

/// Whether frees by code at `caller` are steps.
pub(crate) fn frees(caller: usize) -> Frees {
    match (preempt::holds_no_lock(caller), are_steps()) {
        (false, _) => Frees::AreNoSteps,
        (true, false) => Frees::MayBeSteps,
        (true, true) => Frees::AreSteps,
    }
}

/// Code at `caller` is about to make another such call.
pub(crate) fn before_call(caller: usize) {
    if are_steps() {
        step_at(caller, Event::local(EventKind::Call));
    }
}

#[cold]
#[inline(never)]
fn step_at(caller: usize, event: Event) {
    let me = me();
    if me.is_null() || !preempt::holds_no_lock(caller) {
        return;
    }
    let _inside = Unmanaged::enter();
    if MADE.fetch_add(1, Ordering::Relaxed) == MOST_CALLS {
        ARE_STEPS.store(false, Ordering::Relaxed);
        // SAFETY: a logical thread that runs program code has the token.
        unsafe { (*runtime()).region.report().calls_over.store(1, Ordering::Relaxed) };
    }
    // SAFETY: a logical thread that runs program code has the token; every thread has an errno, and such calls leave it
    // alone when they succeed.
    unsafe {
        let errno = *libc::__errno_location();
        step(Token::held_by(me), event);
        delay::drain(Token::held_by(me));
        *libc::__errno_location() = errno;
    }
}

/// Who did something, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Whereabouts {
    thread: u32,
    step: u64,
}

impl Whereabouts {
    /// Somebody outside the schedule.
    pub(crate) const UNKNOWN: Whereabouts = Whereabouts { thread: u32::MAX, step: 0 };
}

impl Whereabouts {
    /// The same as it is told.
    pub(crate) fn actor(self) -> Actor {
        (self != Whereabouts::UNKNOWN).then_some((self.thread, self.step))
    }
}

/// Who makes this call, and when.
pub(crate) fn whereabouts() -> Whereabouts {
    let me = me();
    if me.is_null() {
        return Whereabouts::UNKNOWN;
    }
    // SAFETY: a logical thread that runs program code has the token.
    unsafe { Whereabouts { thread: (*me).id.0, step: (*runtime()).sched.steps } }
}
