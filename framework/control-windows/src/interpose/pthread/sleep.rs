//! Sleeping.

use core::ffi::c_int;

use super::{EINVAL, Timespec, after, fail, moment_of};
use crate::interpose::{clock, interpose_foreign};
use crate::runtime::sleep;

/// Wall-clock time, and time since an unknown moment in the past.
const REALTIME: c_int = 0;
/// The time is a moment, not a span.
const ABSOLUTE: c_int = 1;

interpose_foreign! {
    fn nanosleep(span: *const Timespec, left: *mut Timespec) -> c_int = real::nanosleep(span, left), |me| {
        if !(*span).is_valid() {
            return fail(EINVAL);
        }
        let moment = after(me, &*span);
        sleep(me, moment);
        0
    }
    fn clock_nanosleep(which: c_int, flags: c_int, time: *const Timespec, left: *mut Timespec) -> c_int
        = real::clock_nanosleep(which, flags, time, left), |me| {
        if !(*time).is_valid() {
            return EINVAL;
        }
        let moment = match (flags & ABSOLUTE != 0, which) {
            (false, _) => after(me, &*time),
            (true, REALTIME) => moment_of(me, &*time),
            (true, _) => clock::moment_of_counted_time(me, (*time).total()),
        };
        sleep(me, moment);
        0
    }
    fn pthread_delay_np(span: *const Timespec) -> c_int = real::pthread_delay_np(span), |me| {
        let moment = after(me, &*span);
        sleep(me, moment);
        0
    }
}
