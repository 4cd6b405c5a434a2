//! Waiting for threads to end: `pthread_join` and its timed and trying kin.
//!
//! The scheduler waits for the last piece of program code of the thread; what is left for the real join is libc's
//! own clean-up, which ends by itself.

use core::ffi::c_void;

use libc::{EBUSY, EINVAL, ETIMEDOUT, clockid_t, pthread_t, timespec};
use waylay_schedule::{Event, EventKind};

use super::clock::{has_deadlines, moment_of};
use super::{interpose, real_thread, signal};
use crate::me::Unmanaged;
use crate::runtime::{Token, Waited, complete_join, join_point, lookup, step};
use crate::sched::Moment;

unsafe fn join(me: &mut Token, handle: pthread_t, result: *mut *mut c_void, deadline: Option<Moment>) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        signal::cancellation_point(me);
        if let Some(thread) = lookup(me, handle as usize)
            && thread != me.thread()
            && !(*thread).detached
        {
            loop {
                match join_point(me, thread, deadline) {
                    Waited::Done => break,
                    Waited::TimedOut => return ETIMEDOUT,
                    Waited::Interrupted => signal::cancellation_point(me),
                }
            }
            return complete_join(me, thread, result);
        }
        let unmanaged = Unmanaged::enter();
        let error = real_thread::pthread_join(handle, result);
        drop(unmanaged);
        error
    }
}

interpose! {
    fn pthread_join(handle: pthread_t, result: *mut *mut c_void) -> i32, |me| { join(me, handle, result, None) }

    fn pthread_tryjoin_np(handle: pthread_t, result: *mut *mut c_void) -> i32, |me| {
        let Some(thread) = lookup(me, handle as usize) else { return real::pthread_tryjoin_np(handle, result) };
        step(me, Event::on_thread(EventKind::ThreadJoin, (*thread).id));
        if !me.run().has_finished(thread) {
            return EBUSY;
        }
        join(me, handle, result, None)
    }

    fn pthread_timedjoin_np(handle: pthread_t, result: *mut *mut c_void, until: *const timespec) -> i32, |me| {
        let deadline = (!until.is_null()).then(|| moment_of(me, libc::CLOCK_REALTIME, &*until));
        join(me, handle, result, deadline)
    }

    fn pthread_clockjoin_np(
        handle: pthread_t,
        result: *mut *mut c_void,
        clock: clockid_t,
        until: *const timespec,
    ) -> i32, |me| {
        if !has_deadlines(clock) {
            return EINVAL;
        }
        let deadline = (!until.is_null()).then(|| moment_of(me, clock, &*until));
        join(me, handle, result, deadline)
    }
}
