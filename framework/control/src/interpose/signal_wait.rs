//! Waiting for signals: `pause`, `sigsuspend`, `sigwait` and their kin.
//!
//! Threads of the run send signals through the scheduler, so that is where a thread waits for one: when nobody is left who
//! could send it, the run is deadlocked. Only where signals may come from elsewhere, from a child or a timer of the
//! kernel's, it waits in the kernel.

use libc::{EAGAIN, EINTR, EINVAL, c_int, siginfo_t, sigset_t, timespec};

use super::clock::{is_length, moment_after};
use super::waiting_call::{self, Accepting};
use super::{fail, interpose, signal};
use crate::instrument::patch::trap;
use crate::me::as_program;
use crate::runtime::signals::{Handled, handled_by_any, kernel_keeps, kernel_pending, take_held, take_one_held};
use crate::runtime::{Logical, TICK_SIGNALS, Token, Waited, demote_me, in_handlers, unknown_event, wait};
use crate::sched::{Key, Moment, Shares};
use crate::sys;

/// The kernel's part of a set, its first word; nothing of one that is not there.
pub(super) unsafe fn signals_in(set: *const sigset_t) -> u64 {
    // SAFETY: the set is null or whole.
    if set.is_null() { 0 } else { unsafe { set.cast::<u64>().read_unaligned() } }
}

fn come_from_elsewhere(me: &mut Token) -> bool {
    me.run().sched.signals_may_come
}

/// Waits for a signal that somebody sends; what it is, the caller finds out.
fn wait_here(me: &mut Token, deadline: Option<Moment>) -> Waited {
    // An address inside the thread's own record that names nothing else.
    let key = Key(me.thread() as usize + 2);
    wait(me, unknown_event(), key, Shares::ALL, deadline, None)
}

/// While it lives, the calling thread blocks other signals than usual, as during `sigsuspend` and `ppoll`.
pub(super) struct OtherMask {
    me: *mut Logical,
    before: u64,
    kernel: u64,
    /// What handlers that ran because of the change mean for the call.
    handled: Handled,
}

impl OtherMask {
    pub(super) fn enter(me: &mut Token, wanted: u64) -> OtherMask {
        // SAFETY: who has the token lives; handlers that run in the middle are program code.
        unsafe {
            demote_me(me);
            let (before, kernel) = ((*me.thread()).mask, sys::signal_mask());
            (*me.thread()).handled = Handled::Nothing;
            (*me.thread()).mask = wanted;
            let first = handled_by_any(kernel_pending() & !wanted);
            in_handlers(me, kernel & !wanted, || sys::swap_signal_mask(trap::to_block(wanted)));
            take_held(me, wanted);
            let then = core::mem::take(&mut (*me.thread()).handled);
            OtherMask { me: me.thread(), before, kernel, handled: if first == Handled::Nothing { then } else { first } }
        }
    }

    /// Whether a handler ran already.
    pub(super) fn was_interrupted(&self) -> bool {
        self.handled != Handled::Nothing
    }
}

impl Drop for OtherMask {
    fn drop(&mut self) {
        // SAFETY: dropped by the thread that entered, at home.
        unsafe {
            (*self.me).mask = self.before;
            sys::swap_signal_mask(self.kernel);
        }
    }
}

/// Waits until a handler has run.
fn wait_for_handler(me: &mut Token, in_kernel: impl Fn() -> c_int) -> c_int {
    // SAFETY: who has the token lives.
    unsafe {
        demote_me(me);
        signal::cancellation_point(me);
        loop {
            take_held(me, (*me.thread()).mask);
            if come_from_elsewhere(me) {
                return waiting_call::accepting(me, 0, in_kernel);
            }
            (*me.thread()).pauses = true;
            wait_here(me, None);
            (*me.thread()).pauses = false;
            if signal::fails(me, false) {
                return fail(EINTR);
            }
        }
    }
}

fn suspend(me: &mut Token, wanted: u64) -> c_int {
    signal::cancellation_point(me);
    if come_from_elsewhere(me) {
        // The kernel changes the mask and waits in one: a signal that comes between the two would be missed.
        return waiting_call::accepting_with(me, wanted, || suspend_in_kernel(wanted));
    }
    let other = OtherMask::enter(me, wanted);
    if other.was_interrupted() {
        return fail(EINTR);
    }
    wait_for_handler(me, || suspend_in_kernel(wanted))
}

fn suspend_in_kernel(wanted: u64) -> c_int {
    // SAFETY: the set is whole: the kernel's part is its first word.
    unsafe {
        let mut mask: sigset_t = core::mem::zeroed();
        (&raw mut mask).cast::<u64>().write_unaligned(trap::to_block(wanted) | TICK_SIGNALS);
        real::sigsuspend(&raw const mask)
    }
}

/// Takes one of these signals; `None` when the deadline comes first, an error when a handler of another one ran.
unsafe fn take(
    me: &mut Token,
    set: u64,
    info: *mut siginfo_t,
    deadline: Option<Moment>,
    in_kernel: impl Fn() -> c_int,
) -> Result<c_int, c_int> {
    struct Blocked(u64);
    impl Drop for Blocked {
        fn drop(&mut self) {
            sys::swap_signal_mask(self.0);
        }
    }
    // SAFETY: called by the running thread; the caller of libc's function vouches for the record.
    unsafe {
        demote_me(me);
        signal::cancellation_point(me);
        // What comes is to be taken here, not handled.
        let _blocked = Blocked(sys::block_signals(trap::to_block(set)));
        loop {
            let accepting = Accepting::enter(me, set);
            take_one_held(me, set);
            let now = timespec { tv_sec: 0, tv_nsec: 0 };
            let args = [&raw const set as usize, info as usize, &raw const now as usize, size_of::<u64>(), 0, 0];
            let taken = sys::call(libc::SYS_rt_sigtimedwait, args);
            if taken > 0 {
                return Ok(taken as c_int);
            }
            if come_from_elsewhere(me) {
                drop(accepting);
                kernel_keeps(me, set);
                let taken = waiting_call::accepting(me, set, &in_kernel);
                return if taken > 0 { Ok(taken) } else { Err(*libc::__errno_location()) };
            }
            match wait_here(me, deadline) {
                Waited::TimedOut => return Err(EAGAIN),
                Waited::Done | Waited::Interrupted => {}
            }
            drop(accepting);
            if signal::fails(me, false) {
                return Err(EINTR);
            }
        }
    }
}

fn number_or_failure(taken: Result<c_int, c_int>) -> c_int {
    taken.unwrap_or_else(fail)
}

// Bound to our own interposed functions, since the library comes first in lookup order.
unsafe extern "C-unwind" {
    fn sigprocmask(how: c_int, new: *const sigset_t, old: *mut sigset_t) -> c_int;
    fn sigaction(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int;
}

/// A set of one signal, if there is such a signal.
fn only(signal: c_int) -> Option<sigset_t> {
    // SAFETY: an empty set is all zero.
    unsafe {
        let mut set: sigset_t = core::mem::zeroed();
        (libc::sigaddset(&raw mut set, signal) == 0).then_some(set)
    }
}

fn change_one(me: &mut Token, how: c_int, signal: c_int) -> c_int {
    // SAFETY: the set is a local.
    unsafe {
        match only(signal) {
            Some(set) => as_program(me, || sigprocmask(how, &raw const set, core::ptr::null_mut())),
            None => fail(EINVAL),
        }
    }
}

/// `SIG_HOLD`, and what `sigset` returns when there is no such signal.
const HOLD: usize = 2;
const NO_HANDLER: usize = usize::MAX;

interpose! {
    fn pause() -> c_int, |me| { wait_for_handler(me, || real::pause()) }

    fn sigsuspend(mask: *const sigset_t) -> c_int, |me| {
        if mask.is_null() {
            return real::sigsuspend(mask);
        }
        suspend(me, signals_in(mask))
    }

    fn sigpause(mask: c_int) -> c_int, |me| { suspend(me, mask as u32 as u64) }

    fn __xpg_sigpause(signal: c_int) -> c_int, |me| {
        match only(signal) {
            Some(set) => suspend(me, (*me.thread()).mask & !signals_in(&raw const set)),
            None => fail(EINVAL),
        }
    }

    fn sigwait(set: *const sigset_t, number: *mut c_int) -> c_int, |me| {
        loop {
            let in_kernel = || real::sigwaitinfo(set, core::ptr::null_mut());
            match take(me, signals_in(set), core::ptr::null_mut(), None, in_kernel) {
                Ok(taken) => {
                    *number = taken;
                    return 0;
                }
                Err(EINTR) => {}
                Err(error) => return error,
            }
        }
    }

    fn sigwaitinfo(set: *const sigset_t, info: *mut siginfo_t) -> c_int, |me| {
        number_or_failure(take(me, signals_in(set), info, None, || real::sigwaitinfo(set, info)))
    }

    fn sigtimedwait(set: *const sigset_t, info: *mut siginfo_t, length: *const timespec) -> c_int, |me| {
        let Some(given) = length.as_ref() else {
            return number_or_failure(take(me, signals_in(set), info, None, || real::sigwaitinfo(set, info)));
        };
        if !is_length(given) {
            return fail(EINVAL);
        }
        let deadline = Some(moment_after(me, &*length));
        number_or_failure(take(me, signals_in(set), info, deadline, || real::sigtimedwait(set, info, length)))
    }

    fn sighold(signal: c_int) -> c_int, |me| { change_one(me, libc::SIG_BLOCK, signal) }
    fn sigrelse(signal: c_int) -> c_int, |me| { change_one(me, libc::SIG_UNBLOCK, signal) }

    fn sigset(signal: c_int, disposition: usize) -> usize, |me| {
        let Some(set) = only(signal) else {
            fail(EINVAL);
            return NO_HANDLER;
        };
        let how = if disposition == HOLD { libc::SIG_BLOCK } else { libc::SIG_UNBLOCK };
        let (mut before, mut old): (sigset_t, libc::sigaction) = core::mem::zeroed();
        let mut new: libc::sigaction = core::mem::zeroed();
        new.sa_sigaction = disposition;
        let new = if disposition == HOLD { core::ptr::null() } else { &raw const new };
        as_program(me, || {
            if sigaction(signal, new, &raw mut old) != 0 || sigprocmask(how, &raw const set, &raw mut before) != 0 {
                return NO_HANDLER;
            }
            if libc::sigismember(&raw const before, signal) == 1 { HOLD } else { old.sa_sigaction }
        })
    }
}
