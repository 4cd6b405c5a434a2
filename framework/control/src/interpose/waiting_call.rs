//! Calls that only the kernel can wait in: for child processes, signals and file locks. The thread makes them on its
//! own kernel thread, without the token, while others go on.

use core::ffi::c_void;

use libc::{c_int, pid_t, rusage, siginfo_t, sigset_t, sockaddr, socklen_t, timespec};

use super::{interpose, signal};
use crate::me::Unmanaged;
use crate::runtime::{Logical, away, runtime, timers, unknown_event};

unsafe fn outside<R>(me: *mut Logical, call: impl FnOnce() -> R) -> R {
    // SAFETY: called by the running thread; the call is libc's and touches nothing of ours.
    unsafe {
        signal::cancellation_point(me);
        let result = away(me, unknown_event(), || {
            let unmanaged = Unmanaged::enter();
            let result = call();
            // errno belongs to the logical thread, whose FS base the home has too.
            drop(unmanaged);
            result
        });
        signal::cancellation_point(me);
        result
    }
}

/// A call that ends with a signal and nothing else.
unsafe fn until_signal<R>(me: *mut Logical, call: impl FnOnce() -> R) -> R {
    // SAFETY: as for `outside`.
    unsafe {
        timers::take_held(me, 0);
        (*runtime()).sched.will_wait_for_signal();
        outside(me, call)
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
    fn flock(fd: c_int, operation: c_int) -> c_int, |me| { outside(me, || real::flock(fd, operation)) }
    fn lockf(fd: c_int, command: c_int, len: i64) -> c_int, |me| { outside(me, || real::lockf(fd, command, len)) }
    fn pause() -> c_int, |me| { until_signal(me, || real::pause()) }
    fn sigsuspend(mask: *const sigset_t) -> c_int, |me| { until_signal(me, || real::sigsuspend(mask)) }
    fn sigwait(set: *const sigset_t, number: *mut c_int) -> c_int, |me| {
        until_signal(me, || real::sigwait(set, number))
    }
    fn sigwaitinfo(set: *const sigset_t, info: *mut siginfo_t) -> c_int, |me| {
        until_signal(me, || real::sigwaitinfo(set, info))
    }
    fn sigtimedwait(set: *const sigset_t, info: *mut siginfo_t, length: *const timespec) -> c_int, |me| {
        timers::take_held(me, 0);
        outside(me, || real::sigtimedwait(set, info, length))
    }
    fn system(command: *const libc::c_char) -> c_int, |me| {
        signal::may_come();
        outside(me, || real::system(command))
    }
    fn pclose(stream: *mut c_void) -> c_int, |me| { outside(me, || real::pclose(stream)) }
}
