//! Sleeping: costs no real time, and ends when the strategy says so.

use libc::{EINVAL, c_int, c_uint, clockid_t, timespec};
use waylay_schedule::{Event, EventKind};

use super::clock::{moment_after, moment_of};
use super::{fail, interpose, signal};
use crate::runtime::{Logical, sleep as sleep_until, step};
use crate::sched::Moment;

pub(super) unsafe fn sleep_to(me: *mut Logical, moment: Moment) {
    // SAFETY: called by the running thread.
    unsafe {
        signal::cancellation_point(me);
        sleep_until(me, moment);
        signal::cancellation_point(me);
    }
}

unsafe fn is_valid(time: *const timespec) -> bool {
    // SAFETY: by the caller's promise.
    unsafe { (*time).tv_sec >= 0 && (0..1_000_000_000).contains(&(*time).tv_nsec) }
}

interpose! {
    fn nanosleep(length: *const timespec, _rest: *mut timespec) -> c_int, |me| {
        if !is_valid(length) {
            return fail(EINVAL);
        }
        sleep_to(me, moment_after(length));
        0
    }

    fn clock_nanosleep(
        clock: clockid_t,
        flags: c_int,
        time: *const timespec,
        _rest: *mut timespec,
    ) -> c_int, |me| {
        if !is_valid(time) {
            return EINVAL;
        }
        let absolute = flags & libc::TIMER_ABSTIME != 0;
        sleep_to(me, if absolute { moment_of(clock, time) } else { moment_after(time) });
        0
    }

    fn usleep(microseconds: c_uint) -> c_int, |me| {
        let time = timespec {
            tv_sec: i64::from(microseconds / 1_000_000),
            tv_nsec: i64::from(microseconds % 1_000_000) * 1000,
        };
        sleep_to(me, moment_after(&raw const time));
        0
    }

    fn sleep(seconds: c_uint) -> c_uint, |me| {
        let time = timespec { tv_sec: i64::from(seconds), tv_nsec: 0 };
        sleep_to(me, moment_after(&raw const time));
        0
    }

    fn sched_yield() -> c_int, |me| {
        step(me, Event::local(EventKind::Yield));
        0
    }

    fn pthread_yield() -> c_int, |me| {
        step(me, Event::local(EventKind::Yield));
        0
    }
}
