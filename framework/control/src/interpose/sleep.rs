//! Sleeping: costs no real time, and ends when the strategy says so, or when a signal handler has run.

use libc::{EINTR, EINVAL, ENOTSUP, c_int, c_uint, clockid_t, timespec};
use waylay_schedule::{Event, EventKind};

use super::clock::{is_length, moment_after, moment_of, rest_until};
use super::{fail, interpose, signal};
use crate::instrument::edge;
use crate::runtime::{Token, Waited, sleep as sleep_until, step};
use crate::sched::Moment;

/// Sleeps until a moment; the time that is left when a handler ran before. No handler makes a sleep begin again.
pub(super) fn sleep_to(me: &mut Token, moment: Moment) -> Result<(), timespec> {
    signal::cancellation_point(me);
    edge::gives_way(me);
    while sleep_until(me, moment) == Waited::Interrupted {
        if signal::fails(me, false) {
            return Err(rest_until(me, moment));
        }
    }
    signal::cancellation_point(me);
    Ok(())
}

/// Lets others run.
pub(super) fn give_way(me: &mut Token) {
    edge::gives_way(me);
    step(me, Event::local(EventKind::Yield));
}

/// The error of a sleep by this clock, if there is any.
fn refusal(clock: clockid_t) -> Option<c_int> {
    match clock {
        libc::CLOCK_REALTIME
        | libc::CLOCK_MONOTONIC
        | libc::CLOCK_PROCESS_CPUTIME_ID
        | libc::CLOCK_BOOTTIME
        | libc::CLOCK_REALTIME_ALARM
        | libc::CLOCK_BOOTTIME_ALARM
        | libc::CLOCK_TAI => None,
        libc::CLOCK_MONOTONIC_RAW | libc::CLOCK_REALTIME_COARSE | libc::CLOCK_MONOTONIC_COARSE => Some(ENOTSUP),
        clock if clock < 0 => None,
        _ => Some(EINVAL),
    }
}

interpose! {
    fn nanosleep(length: *const timespec, rest: *mut timespec) -> c_int, |me| {
        if !is_length(&*length) {
            return fail(EINVAL);
        }
        let deadline = moment_after(me, &*length);
        let Err(left) = sleep_to(me, deadline) else { return 0 };
        if !rest.is_null() {
            *rest = left;
        }
        fail(EINTR)
    }

    fn clock_nanosleep(
        clock: clockid_t,
        flags: c_int,
        time: *const timespec,
        rest: *mut timespec,
    ) -> c_int, |me| {
        if let Some(error) = refusal(clock) {
            return error;
        }
        if !is_length(&*time) {
            return EINVAL;
        }
        let absolute = flags & libc::TIMER_ABSTIME != 0;
        let moment = if absolute { moment_of(me, clock, &*time) } else { moment_after(me, &*time) };
        let Err(left) = sleep_to(me, moment) else { return 0 };
        if !absolute && !rest.is_null() {
            *rest = left;
        }
        EINTR
    }

    fn usleep(microseconds: c_uint) -> c_int, |me| {
        let time = timespec {
            tv_sec: i64::from(microseconds / 1_000_000),
            tv_nsec: i64::from(microseconds % 1_000_000) * 1000,
        };
        let deadline = moment_after(me, &time);
        match sleep_to(me, deadline) {
            Ok(()) => 0,
            Err(_) => fail(EINTR),
        }
    }

    fn sleep(seconds: c_uint) -> c_uint, |me| {
        let time = timespec { tv_sec: i64::from(seconds), tv_nsec: 0 };
        let deadline = moment_after(me, &time);
        match sleep_to(me, deadline) {
            Ok(()) => 0,
            // As libc does: the part of a second does not count.
            Err(left) => left.tv_sec as c_uint,
        }
    }

    fn sched_yield() -> c_int, |me| {
        give_way(me);
        0
    }

    fn pthread_yield() -> c_int, |me| {
        give_way(me);
        0
    }
}
