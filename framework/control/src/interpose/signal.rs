//! Signals between threads, signal masks and cancellation.
//!
//! What is sent to a thread of the run is kept until it runs (`runtime::signals`).
//! Masks belong to the kernel thread, so a thread that changes its mask moves home first.

use core::ffi::c_void;

use libc::{c_int, pid_t, pthread_t, sigset_t};
use waylay_schedule::{Event, EventKind};

use super::{fail, interpose};
use crate::instrument::edge;
use crate::instrument::patch::trap;
use crate::me::as_program;
use crate::sched::State;
use crate::runtime::signals::{self, Handled, Origin, take_held};
use crate::runtime::{Logical, Token, demote_me, in_handlers, lookup, step};
use crate::{snapshot, sys};

/// Where a cancelled thread ends.
pub(crate) fn cancellation_point(me: &mut Token) {
    // SAFETY: who has the token lives; libc unwinds the thread on its own kernel thread, or up to where that is put back.
    unsafe {
        if is_to_end(me.thread()) {
            if snapshot::is_on() {
                (*me.thread()).result = CANCELLED;
            } else {
                demote_me(me);
            }
            // libc learns of it only here: it would end the thread inside any call of its own, on whatever kernel thread that is.
            real::pthread_cancel(libc::pthread_self());
            as_program(me, || real::pthread_testcancel());
        }
    }
}

/// Whether a thread ends at the next cancellation point.
///
/// # Safety
/// The thread exists.
pub(super) unsafe fn is_to_end(thread: *mut Logical) -> bool {
    // SAFETY: by the caller's promise.
    unsafe { (*thread).cancelled && !(*thread).keeps_going }
}

/// A signal may come that no thread of the run sends: from a child, or from a timer of the kernel's. Who waits for one need not be
/// deadlocked, and has to wait in the kernel.
pub(super) fn may_come(me: &mut Token) {
    let run = me.run();
    if core::mem::replace(&mut run.sched.signals_may_come, true) {
        return;
    }
    for index in 0..run.logicals.len() {
        let thread = run.logicals[index];
        // SAFETY: threads in the list live as long as the run.
        unsafe {
            if ((*thread).accepts != 0 || (*thread).pauses) && !run.has_finished(thread) {
                run.sched.interrupt((*thread).id);
            }
        }
    }
}

/// After a wait was broken off: ends the thread if it was asked to end, and says whether the call has to fail with EINTR. Calls that
/// the kernel begins again behind a handler that wants it (`SA_RESTART`) are `restarted`.
///
pub(super) fn fails(me: &mut Token, restarted: bool) -> bool {
    // SAFETY: who has the token lives.
    unsafe {
        cancellation_point(me);
        match core::mem::take(&mut (*me.thread()).handled) {
            Handled::Nothing => false,
            Handled::Restarts => !restarted,
            Handled::Fails => true,
        }
    }
}

const UNBLOCKABLE: u64 = 1 << (libc::SIGKILL - 1) | 1 << (libc::SIGSTOP - 1) | 0b11 << 31;

/// What a mask becomes; `None` where there is no such change.
unsafe fn changed(before: u64, how: c_int, new: *const sigset_t) -> Option<u64> {
    if new.is_null() {
        return Some(before);
    }
    // SAFETY: by the caller's promise; the kernel's part of a set is its first word.
    let given = unsafe { new.cast::<u64>().read_unaligned() };
    let after = match how {
        libc::SIG_BLOCK => before | given,
        libc::SIG_UNBLOCK => before & !given,
        libc::SIG_SETMASK => given,
        _ => return None,
    };
    Some(after & !UNBLOCKABLE)
}

/// Changes the mask of a thread whose kernel thread has none of its own: in a run that will be undone no signal comes from
/// outside, so that it matters only for those that threads send each other.
///
/// # Safety
/// The pointers are null or valid.
unsafe fn change_mask(me: &mut Token, how: c_int, new: *const sigset_t, old: *mut sigset_t) -> c_int {
    // SAFETY: by the caller's promise.
    unsafe {
        let before = (*me.thread()).mask;
        let Some(after) = changed(before, how, new) else { return libc::EINVAL };
        if !old.is_null() {
            old.write_bytes(0, 1);
            old.cast::<u64>().write_unaligned(before);
        }
        (*me.thread()).mask = after;
        edge::masked(me, before, after);
        take_held(me, after);
    }
    0
}

/// Notes the mask of the calling kernel thread, and takes what it lets through. The program sees its own mask and not the
/// kernel's, in which the signal of breakpoints never is.
unsafe fn mask_changed(me: &mut Token, how: c_int, new: *const sigset_t, old: *mut sigset_t) {
    // SAFETY: called by the running thread, at home.
    unsafe {
        let before = (*me.thread()).mask;
        let unseen = before & !trap::to_block(before);
        if !old.is_null() {
            let word = old.cast::<u64>();
            word.write_unaligned(word.read_unaligned() | unseen);
        }
        // Inside a handler the kernel's mask has more than the thread's own.
        let now = sys::signal_mask();
        (*me.thread()).mask = changed(now | unseen, how, new).unwrap_or(now | unseen);
        edge::masked(me, before, (*me.thread()).mask);
        sys::swap_signal_mask(trap::to_block(now));
        take_held(me, (*me.thread()).mask);
    }
}

/// What a thread that was cancelled returns: `PTHREAD_CANCELED`.
const CANCELLED: *mut c_void = core::ptr::without_provenance_mut(usize::MAX);
const SYNCHRONOUS: c_int = 0;
const ASYNCHRONOUS: c_int = 1;
/// `PTHREAD_CANCEL_DISABLE`.
const DISABLED: c_int = 1;

/// Whether this is a signal that can be sent, not only asked about, and that is not one of libc's own.
fn is_signal(signal: c_int) -> bool {
    (1..=64).contains(&signal) && !(32..=33).contains(&signal)
}

/// Sends a signal to a thread of the run; one that has ended gets none.
unsafe fn send(me: &mut Token, to: *mut Logical, signal: c_int, origin: Origin) {
    // SAFETY: called by the running thread.
    unsafe {
        if me.run().has_finished(to) {
            return;
        }
        signals::send_to_thread(me, to, signal, origin);
        if to != me.thread() {
            step(me, Event::on_thread(EventKind::SignalSend, (*to).id));
        }
    }
}

/// The thread of the run with this number of the kernel's.
fn of_kernel_thread(me: &mut Token, number: pid_t) -> Option<*mut Logical> {
    let run = me.run();
    // SAFETY: threads in the list live as long as the run.
    let known = |thread: &*mut Logical| unsafe { (**thread).kernel_id == number && !run.has_finished(*thread) };
    run.logicals.iter().copied().find(known)
}

interpose! {
    // The kernel would have the handler run on whatever kernel thread it likes, beside the one that has the token.
    fn kill(process: pid_t, signal: c_int) -> c_int, |me| {
        if process == sys::process_id() && is_signal(signal) && signals::send_to_process(me, signal, Origin::Process) {
            step(me, Event::local(EventKind::SignalSend));
            return 0;
        }
        if process != sys::process_id() {
            may_come(me);
        }
        in_handlers(me, 0, || real::kill(process, signal))
    }
    fn killpg(group: pid_t, signal: c_int) -> c_int, |me| {
        may_come(me);
        in_handlers(me, 0, || real::killpg(group, signal))
    }
    fn sigqueue(process: pid_t, signal: c_int, value: libc::sigval) -> c_int, |me| {
        let origin = Origin::Queue(value.sival_ptr as usize);
        if process == sys::process_id() && is_signal(signal) && signals::send_to_process(me, signal, origin) {
            step(me, Event::local(EventKind::SignalSend));
            return 0;
        }
        if process != sys::process_id() {
            may_come(me);
        }
        in_handlers(me, 0, || real::sigqueue(process, signal, value))
    }
    fn tgkill(process: pid_t, thread: pid_t, signal: c_int) -> c_int, |me| {
        match of_kernel_thread(me, thread) {
            Some(to) if process == sys::process_id() && is_signal(signal) => {
                send(me, to, signal, Origin::Thread);
                0
            }
            _ => real::tgkill(process, thread, signal),
        }
    }

    // libc would act in the parked kernel thread, at once and on the wrong stack. Instead every step of a thread that
    // asked for it is a cancellation point.
    fn pthread_setcanceltype(new: c_int, old: *mut c_int) -> c_int, |me| {
        if new != SYNCHRONOUS && new != ASYNCHRONOUS {
            return libc::EINVAL;
        }
        let before = core::mem::replace(&mut (*me.thread()).cancels_anywhere, new == ASYNCHRONOUS);
        if !old.is_null() {
            *old = if before { ASYNCHRONOUS } else { SYNCHRONOUS };
        }
        if (*me.thread()).cancels_anywhere {
            cancellation_point(me);
        }
        0
    }

    fn pthread_testcancel() -> (), |me| { cancellation_point(me) }

    fn pthread_cancel(handle: pthread_t) -> c_int, |me| {
        let Some(thread) = lookup(me, handle as usize) else { return real::pthread_cancel(handle) };
        if me.run().has_finished(thread) {
            return 0;
        }
        (*thread).cancelled = true;
        let mut result = 0;
        if thread != me.thread() {
            // It may be between a look whether it is to end and the wait that would notice. One that is not to end now goes on
            // waiting: what wakes it meanwhile must find it.
            if is_to_end(thread) {
                me.run().sched.call_off((*thread).id);
            }
            if me.run().sched.thread((*thread).id).state == State::Away {
                // libc ends the call in which it waits, on the thread's own kernel thread.
                result = real::pthread_cancel(handle);
            }
        } else if (*me.thread()).cancels_anywhere {
            cancellation_point(me);
        }
        step(me, Event::on_thread(EventKind::SignalSend, (*thread).id));
        result
    }

    fn pthread_setcancelstate(new: c_int, old: *mut c_int) -> c_int, |me| {
        let result = real::pthread_setcancelstate(new, old);
        if result == 0 {
            (*me.thread()).keeps_going = new == DISABLED;
        }
        result
    }

    fn pthread_kill(handle: pthread_t, signal: c_int) -> c_int, |me| {
        match lookup(me, handle as usize) {
            Some(to) if is_signal(signal) => {
                send(me, to, signal, Origin::Thread);
                0
            }
            _ => real::pthread_kill(handle, signal),
        }
    }

    fn pthread_sigqueue(handle: pthread_t, signal: c_int, value: libc::sigval) -> c_int, |me| {
        match lookup(me, handle as usize) {
            Some(to) if is_signal(signal) => {
                send(me, to, signal, Origin::Queue(value.sival_ptr as usize));
                0
            }
            _ => real::pthread_sigqueue(handle, signal, value),
        }
    }

    fn sigpending(set: *mut sigset_t) -> c_int, |me| {
        if real::sigpending(set) != 0 {
            return -1;
        }
        let word = set.cast::<u64>();
        word.write_unaligned(word.read_unaligned() | signals::pending(me));
        0
    }

    fn raise(signal: c_int) -> c_int, |me| {
        demote_me(me);
        in_handlers(me, 0, || real::raise(signal))
    }

    fn pthread_sigmask(how: c_int, new: *const sigset_t, old: *mut sigset_t) -> c_int, |me| {
        if snapshot::is_on() {
            return change_mask(me, how, new, old);
        }
        demote_me(me);
        let result = in_handlers(me, (*me.thread()).mask, || real::pthread_sigmask(how, new, old));
        if result == 0 {
            mask_changed(me, how, new, old);
        }
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
        let result = in_handlers(me, (*me.thread()).mask, || real::sigprocmask(how, new, old));
        if result == 0 {
            mask_changed(me, how, new, old);
        }
        result
    }
}
