//! Signals between threads, signal masks and cancellation.
//!
//! A signal for another logical thread is kept until that thread runs, which then raises it on itself: handlers run
//! on the right kernel thread, at a point that the schedule decides, and never beside the thread that has the token.
//! Masks belong to the kernel thread, so a thread that changes its mask moves home first.

use libc::{c_int, pthread_t, sigset_t};
use waylay_schedule::{Event, EventKind};

use super::interpose;
use crate::me::as_program;
use crate::runtime::{Logical, demote_me, interrupt, lookup, raise_pending, runtime, step};

/// Where a cancelled thread ends.
///
/// # Safety
/// `me` executes the call and holds the token.
pub(super) unsafe fn cancellation_point(me: *mut Logical) {
    // SAFETY: by the caller's promise; libc unwinds the thread on its own kernel thread.
    unsafe {
        if (*me).cancelled {
            demote_me(me);
            as_program(me, || real::pthread_testcancel());
        }
    }
}

interpose! {
    fn pthread_testcancel() -> (), |me| { cancellation_point(me) }

    fn pthread_cancel(handle: pthread_t) -> c_int, |me| {
        let Some(thread) = lookup(handle as usize) else { return real::pthread_cancel(handle) };
        if (*runtime()).has_finished(thread) {
            return 0;
        }
        (*thread).cancelled = true;
        if thread == me {
            demote_me(me);
        } else {
            interrupt(thread);
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
        (*thread).pending_signals |= 1 << (signal - 1);
        if thread == me {
            raise_pending(me);
            return 0;
        }
        interrupt(thread);
        step(me, Event::on_thread(EventKind::SignalSend, (*thread).id));
        0
    }

    fn raise(signal: c_int) -> c_int, |me| {
        demote_me(me);
        as_program(me, || real::raise(signal))
    }

    fn pthread_sigmask(how: c_int, new: *const sigset_t, old: *mut sigset_t) -> c_int, |me| {
        demote_me(me);
        as_program(me, || real::pthread_sigmask(how, new, old))
    }

    fn sigprocmask(how: c_int, new: *const sigset_t, old: *mut sigset_t) -> c_int, |me| {
        demote_me(me);
        as_program(me, || real::sigprocmask(how, new, old))
    }
}
