//! Calls that only the kernel can wait in: for child processes, signals, file locks, semaphores and messages of System V.
//! The thread makes them on its own kernel thread, without the token, while others go on.

use core::ffi::c_void;

use libc::{c_int, c_long, pid_t, rusage, siginfo_t, sockaddr, socklen_t, timespec};

use super::{interpose, signal};
use crate::instrument::patch::trap;
use crate::me::Unmanaged;
use crate::runtime::outside as beside;
use crate::runtime::signals::take_held;
use crate::runtime::{Logical, Place, TICK_SIGNALS, Token, away, demote_me, unknown_event};
use crate::sys;

fn outside<R>(me: &mut Token, call: impl FnOnce() -> R) -> R {
    signal::cancellation_point(me);
    let result = in_kernel(me, call);
    signal::cancellation_point(me);
    result
}

/// A call of libc's on the thread's own kernel thread, while others go on.
pub(super) fn in_kernel<R>(me: &mut Token, call: impl FnOnce() -> R) -> R {
    // SAFETY: a logical thread outlives its calls.
    unsafe {
        let thread = me.thread();
        away(me, unknown_event(), || {
            let unmanaged = Unmanaged::enter();
            let undisturbed = Undisturbed::enter(thread);
            let result = call();
            // errno belongs to the logical thread, whose FS base the home has too.
            drop(undisturbed);
            drop(unmanaged);
            result
        })
    }
}

/// Keeps the ticks of our own timers away from the calling kernel thread: some calls do not begin again after a handler,
/// and to the program a wait for signals ends with one of its own. The program's signals get through, also where the kernel
/// thread is one that waits with all of them blocked for its logical thread to come home.
struct Undisturbed(u64);

impl Undisturbed {
    unsafe fn enter(me: *mut Logical) -> Undisturbed {
        // SAFETY: the calling kernel thread is that of the logical thread, which nobody else changes meanwhile.
        let parked = unsafe { ((*me).place == Place::Carrier).then(|| (*me).mask) };
        Undisturbed(match parked {
            Some(mask) => sys::swap_signal_mask(trap::to_block(mask) | TICK_SIGNALS),
            None => sys::block_signals(TICK_SIGNALS),
        })
    }
}

impl Drop for Undisturbed {
    fn drop(&mut self) {
        sys::swap_signal_mask(self.0);
    }
}

/// For as long as it lives, a thread takes these signals.
pub(super) struct Accepting(*mut Logical);

impl Accepting {
    pub(super) fn enter(me: &mut Token, signals: u64) -> Accepting {
        // SAFETY: who has the token lives.
        unsafe { (*me.thread()).accepts = signals };
        Accepting(me.thread())
    }
}

impl Drop for Accepting {
    fn drop(&mut self) {
        // SAFETY: a logical thread outlives its calls.
        unsafe { (*self.0).accepts = 0 };
    }
}

/// A call that only one of these signals ends, and that somebody may send from elsewhere.
pub(super) fn accepting<R>(me: &mut Token, signals: u64, call: impl FnOnce() -> R) -> R {
    me.run().sched.will_wait_for_signal();
    let accepting = Accepting::enter(me, signals);
    let result = outside(me, call);
    drop(accepting);
    result
}

/// Whether a command of `fcntl` waits for a lock.
fn waits(command: c_int) -> bool {
    matches!(command, libc::F_SETLKW | libc::F_OFD_SETLKW)
}

/// A call that ends when a handler has run, and for which the kernel blocks these signals instead of the thread's own.
pub(super) fn accepting_with(me: &mut Token, mask: u64, call: impl FnOnce() -> c_int) -> c_int {
    struct Mask(*mut Logical, u64);
    impl Drop for Mask {
        fn drop(&mut self) {
            // SAFETY: a logical thread outlives its calls.
            unsafe { (*self.0).mask = self.1 };
        }
    }
    // SAFETY: who has the token lives. What was sent before is raised, and the kernel keeps it until the call.
    unsafe {
        demote_me(me);
        let _back = Mask(me.thread(), core::mem::replace(&mut (*me.thread()).mask, mask));
        take_held(me, mask);
        accepting(me, 0, call)
    }
}

interpose! {
    fn waitpid(process: pid_t, status: *mut c_int, options: c_int) -> pid_t, |me| {
        outside(me, || real::waitpid(process, status, options))
    }
    fn wait(status: *mut c_int) -> pid_t, |me| { outside(me, || real::wait(status)) }
    fn wait3(status: *mut c_int, options: c_int, usage: *mut rusage) -> pid_t, |me| {
        outside(me, || real::wait3(status, options, usage))
    }
    fn wait4(process: pid_t, status: *mut c_int, options: c_int, usage: *mut rusage) -> pid_t, |me| {
        outside(me, || real::wait4(process, status, options, usage))
    }
    fn waitid(kind: c_int, id: c_int, info: *mut siginfo_t, options: c_int) -> c_int, |me| {
        outside(me, || real::waitid(kind, id, info, options))
    }
    fn connect(fd: c_int, peer: *const sockaddr, len: socklen_t) -> c_int, |me| {
        outside(me, || real::connect(fd, peer, len))
    }
    // As for all functions that take any number of arguments, what is passed on is what their registers hold.
    fn fcntl(fd: c_int, command: c_int, argument: usize) -> c_int, |me| {
        if waits(command) { outside(me, || real::fcntl(fd, command, argument)) } else { real::fcntl(fd, command, argument) }
    }
    fn fcntl64(fd: c_int, command: c_int, argument: usize) -> c_int, |me| {
        if waits(command) { outside(me, || real::fcntl64(fd, command, argument)) } else { real::fcntl64(fd, command, argument) }
    }
    fn aio_suspend(list: *const *const c_void, count: c_int, length: *const timespec) -> c_int, |me| {
        outside(me, || real::aio_suspend(list, count, length))
    }
    fn aio_suspend64(list: *const *const c_void, count: c_int, length: *const timespec) -> c_int, |me| {
        outside(me, || real::aio_suspend64(list, count, length))
    }
    fn flock(fd: c_int, operation: c_int) -> c_int, |me| { outside(me, || real::flock(fd, operation)) }
    fn lockf(fd: c_int, command: c_int, len: i64) -> c_int, |me| { outside(me, || real::lockf(fd, command, len)) }
    fn lockf64(fd: c_int, command: c_int, len: i64) -> c_int, |me| { outside(me, || real::lockf64(fd, command, len)) }
    fn semop(set: c_int, operations: *mut c_void, count: usize) -> c_int, |me| {
        outside(me, || real::semop(set, operations, count))
    }
    fn semtimedop(set: c_int, operations: *mut c_void, count: usize, length: *const timespec) -> c_int, |me| {
        outside(me, || real::semtimedop(set, operations, count, length))
    }
    fn msgsnd(queue: c_int, message: *const c_void, len: usize, flags: c_int) -> c_int, |me| {
        outside(me, || real::msgsnd(queue, message, len, flags))
    }
    fn msgrcv(queue: c_int, message: *mut c_void, len: usize, kind: c_long, flags: c_int) -> isize, |me| {
        outside(me, || real::msgrcv(queue, message, len, kind, flags))
    }
    fn system(command: *const libc::c_char) -> c_int, |me| {
        signal::may_come(me);
        beside::process_starts(me, "system");
        outside(me, || real::system(command))
    }
    fn pclose(stream: *mut c_void) -> c_int, |me| { outside(me, || real::pclose(stream)) }
}
