//! Signals between threads, signal masks and cancellation.
//!
//! A signal for another logical thread is kept until that thread runs, which then raises it on itself: handlers run
//! on the right kernel thread, at a point that the schedule decides, and never beside the thread that has the token.
//! Masks belong to the kernel thread, so a thread that changes its mask moves home first.

use core::ffi::c_void;

use libc::{c_int, pid_t, pthread_t, sigset_t};
use waylay_schedule::{Event, EventKind};

use super::{fail, interpose};
use crate::instrument::edge;
use crate::instrument::patch::trap;
use crate::me::as_program;
use crate::runtime::{
    Logical, call_off, demote_me, in_handlers, interrupt, lookup, raise_pending, runtime, step, timers,
};
use crate::sched::State;
use crate::{snapshot, sys};

/// Where a cancelled thread ends.
///
/// # Safety
/// `me` executes the call and holds the token.
pub(crate) unsafe fn cancellation_point(me: *mut Logical) {
    // SAFETY: by the caller's promise; libc unwinds the thread on its own kernel thread, or up to where that is put back.
    unsafe {
        if (*me).cancelled {
            if snapshot::is_on() {
                (*me).result = CANCELLED;
            } else {
                demote_me(me);
            }
            as_program(me, || real::pthread_testcancel());
        }
    }
}

/// A signal is under way, or may come from a timer or a child. Who waits for one from now on need not be deadlocked.
///
/// # Safety
/// The caller holds the token.
pub(super) unsafe fn may_come() {
    // SAFETY: by the caller's promise.
    unsafe { (*runtime()).sched.signals_may_come = true };
}

/// Changes the mask of a thread whose kernel thread has none of its own: in a run that will be undone no signal comes from
/// outside, so that it matters only for those that threads send each other.
///
/// # Safety
/// `me` executes the call and holds the token; the pointers are null or valid.
unsafe fn change_mask(me: *mut Logical, how: c_int, new: *const sigset_t, old: *mut sigset_t) -> c_int {
    const UNBLOCKABLE: u64 = 1 << (libc::SIGKILL - 1) | 1 << (libc::SIGSTOP - 1) | 0b11 << 31;
    // SAFETY: by the caller's promise; the kernel's part of a set is its first word.
    unsafe {
        let before = (*me).mask;
        let given = if new.is_null() { 0 } else { new.cast::<u64>().read_unaligned() };
        let after = match how {
            _ if new.is_null() => before,
            libc::SIG_BLOCK => before | given,
            libc::SIG_UNBLOCK => before & !given,
            libc::SIG_SETMASK => given,
            _ => return libc::EINVAL,
        };
        if !old.is_null() {
            old.write_bytes(0, 1);
            old.cast::<u64>().write_unaligned(before);
        }
        (*me).mask = after & !UNBLOCKABLE;
        edge::masked(me, before, (*me).mask);
        timers::take_held(me, (*me).mask);
        if (*me).pending_signals & !(*me).mask != 0 {
            raise_pending(me);
        }
    }
    0
}

/// Notes the mask of the calling kernel thread, and takes what it lets through.
unsafe fn mask_changed(me: *mut Logical) {
    // SAFETY: called by the running thread, at home.
    unsafe {
        let before = core::mem::replace(&mut (*me).mask, sys::signal_mask());
        edge::masked(me, before, (*me).mask);
        if trap::to_block((*me).mask) != (*me).mask {
            sys::swap_signal_mask(trap::to_block((*me).mask));
        }
        timers::take_held(me, (*me).mask);
    }
}

/// What a thread that was cancelled returns: `PTHREAD_CANCELED`.
const CANCELLED: *mut c_void = core::ptr::without_provenance_mut(usize::MAX);
const SYNCHRONOUS: c_int = 0;
const ASYNCHRONOUS: c_int = 1;

interpose! {
    // The kernel would have the handler run on whatever kernel thread it likes, beside the one that has the token.
    fn kill(process: pid_t, signal: c_int) -> c_int, |me| {
        may_come();
        if signal > 0 && signal <= 64 && process == sys::process_id() && timers::send_to_process(me, signal) {
            step(me, Event::local(EventKind::SignalSend));
            return 0;
        }
        real::kill(process, signal)
    }
    fn killpg(group: pid_t, signal: c_int) -> c_int, |_me| {
        may_come();
        real::killpg(group, signal)
    }
    fn sigqueue(process: pid_t, signal: c_int, value: libc::sigval) -> c_int, |_me| {
        may_come();
        real::sigqueue(process, signal, value)
    }

    // libc would act in the parked kernel thread, at once and on the wrong stack. Instead every step of a thread that
    // asked for it is a cancellation point.
    fn pthread_setcanceltype(new: c_int, old: *mut c_int) -> c_int, |me| {
        if new != SYNCHRONOUS && new != ASYNCHRONOUS {
            return libc::EINVAL;
        }
        let before = core::mem::replace(&mut (*me).cancels_anywhere, new == ASYNCHRONOUS);
        if !old.is_null() {
            *old = if before { ASYNCHRONOUS } else { SYNCHRONOUS };
        }
        if (*me).cancels_anywhere {
            cancellation_point(me);
        }
        0
    }

    fn pthread_testcancel() -> (), |me| { cancellation_point(me) }

    fn pthread_cancel(handle: pthread_t) -> c_int, |me| {
        let Some(thread) = lookup(handle as usize) else { return real::pthread_cancel(handle) };
        if (*runtime()).has_finished(thread) {
            return 0;
        }
        (*thread).cancelled = true;
        if thread == me {
            if !snapshot::is_on() {
                demote_me(me);
            }
        } else {
            // It may be between a look whether it is to end and the wait that would notice.
            call_off(thread);
        }
        let result = real::pthread_cancel(handle);
        step(me, Event::on_thread(EventKind::SignalSend, (*thread).id));
        result
    }

    fn pthread_kill(handle: pthread_t, signal: c_int) -> c_int, |me| {
        let Some(thread) = lookup(handle as usize) else { return real::pthread_kill(handle, signal) };
        if signal <= 0 || signal > 64 {
            return real::pthread_kill(handle, signal);
        }
        if (*runtime()).has_finished(thread) {
            return 0;
        }
        may_come();
        if (*runtime()).sched.thread((*thread).id).state == State::Away {
            // It sits in the kernel on its own kernel thread, where the signal belongs.
            return real::pthread_kill(handle, signal);
        }
        (*thread).pending_signals |= 1 << (signal - 1);
        edge::signals(me, thread);
        if thread == me {
            raise_pending(me);
            return 0;
        }
        interrupt(thread);
        step(me, Event::on_thread(EventKind::SignalSend, (*thread).id));
        0
    }

    fn raise(signal: c_int) -> c_int, |me| {
        may_come();
        demote_me(me);
        as_program(me, || real::raise(signal))
    }

    fn pthread_sigmask(how: c_int, new: *const sigset_t, old: *mut sigset_t) -> c_int, |me| {
        if snapshot::is_on() {
            return change_mask(me, how, new, old);
        }
        demote_me(me);
        let result = in_handlers(me, (*me).mask, || real::pthread_sigmask(how, new, old));
        mask_changed(me);
        result
    }

    fn sigprocmask(how: c_int, new: *const sigset_t, old: *mut sigset_t) -> c_int, |me| {
        if snapshot::is_on() {
            return match change_mask(me, how, new, old) {
                0 => 0,
                error => fail(error),
            };
        }
        demote_me(me);
        let result = in_handlers(me, (*me).mask, || real::sigprocmask(how, new, old));
        mask_changed(me);
        result
    }
}
