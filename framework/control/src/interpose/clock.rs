//! Clocks: what the program reads, and how its absolute times become moments of virtual time.
//!
//! With the virtual clock every run begins at the same instant. A loop that does nothing but read a clock gives way
//! after a while, since nobody else would move otherwise.

use core::ffi::c_void;

use libc::{c_int, clockid_t, time_t, timespec, timeval};
use waylay_control_protocol::ClockSource;
use waylay_schedule::{Event, EventKind, ThreadId};

use super::{fail, interpose};
use crate::me::Unmanaged;
use crate::runtime::{Token, step};
use crate::sched::Moment;
use crate::sys;

/// Where virtual wall-clock time begins: 2024-01-01 00:00:00 UTC.
const WALL: u64 = 1_704_067_200 * SECOND;
/// Where other virtual clocks begin: long enough after "boot" that programs may subtract a while from it.
const MONOTONIC: u64 = 100_000 * SECOND;
const SECOND: u64 = 1_000_000_000;
/// Looks at a clock, with no step in between, after which others get their turn.
const PATIENCE: u32 = 64;

/// What a clock of the program counts.
#[derive(Clone, Copy)]
enum Counts {
    /// Virtual time, from this on.
    Time(u64),
    /// Processor time of this process, in virtual time.
    Process,
    /// That of one of its threads.
    Thread(ThreadId),
    /// Processor time of somebody else.
    Others,
}

/// What a clock counts for that thread.
fn counts(me: &mut Token, clock: clockid_t) -> Counts {
    // Negative numbers name the processor time of a process or thread, whose number is in the upper bits; 0 is the caller's.
    const OF_THREAD: clockid_t = 4;
    // SAFETY: threads in the list live as long as the run, and who has the token does.
    unsafe {
        match clock {
            libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE | libc::CLOCK_TAI => Counts::Time(WALL),
            libc::CLOCK_PROCESS_CPUTIME_ID => Counts::Process,
            libc::CLOCK_THREAD_CPUTIME_ID => Counts::Thread((*me.thread()).id),
            clock if clock >= 0 => Counts::Time(MONOTONIC),
            clock => match (!(clock >> 3), clock & OF_THREAD != 0) {
                (0, true) => Counts::Thread((*me.thread()).id),
                (0, false) => Counts::Process,
                (number, true) => {
                    let mut all = me.run().logicals.iter().rev();
                    all.find(|thread| (***thread).kernel_id == number)
                        .map_or(Counts::Others, |thread| Counts::Thread((**thread).id))
                }
                (number, false) if number == libc::getpid() => Counts::Process,
                (_, false) => Counts::Others,
            },
        }
    }
}

/// What a clock shows, which stands still for who asks this way; nothing for one that is not ours.
fn shown(me: &mut Token, clock: clockid_t) -> Option<u64> {
    let counts = counts(me, clock);
    let sched = &me.run().sched;
    match counts {
        Counts::Time(epoch) => Some(epoch.saturating_add(sched.clock.now().0)),
        Counts::Process => Some(sched.clock.busy()),
        Counts::Thread(thread) => Some(sched.thread(thread).busy),
        Counts::Others => None,
    }
}

/// Whether the program is shown virtual time.
pub(super) fn is_virtual(me: &mut Token) -> bool {
    me.run().settings.clock == ClockSource::Virtual as u32
}

pub(super) fn nanoseconds(time: &timespec) -> u64 {
    u64::try_from(time.tv_sec)
        .map_or(0, |s| s.saturating_mul(SECOND))
        .saturating_add(time.tv_nsec.max(0) as u64)
}

pub(super) fn timespec_of(nanoseconds: u64) -> timespec {
    timespec { tv_sec: (nanoseconds / SECOND) as time_t, tv_nsec: (nanoseconds % SECOND) as libc::c_long }
}

/// Whether this is a length of time.
pub(super) fn is_length(time: &timespec) -> bool {
    time.tv_sec >= 0 && has_nanoseconds(time)
}

/// Whether the part below the second is one.
pub(super) fn has_nanoseconds(time: &timespec) -> bool {
    (0..SECOND as i64).contains(&time.tv_nsec)
}

/// Whether a deadline of libc's functions may be given by this clock.
pub(super) fn has_deadlines(clock: clockid_t) -> bool {
    matches!(clock, libc::CLOCK_REALTIME | libc::CLOCK_MONOTONIC)
}

/// What is left until a moment.
pub(super) fn rest_until(me: &mut Token, moment: Moment) -> timespec {
    timespec_of(moment.0.saturating_sub(me.run().sched.clock.now().0))
}

/// Whether the kernel has this clock.
fn exists(clock: clockid_t) -> bool {
    let mut time = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes the local.
    unsafe { sys::call(libc::SYS_clock_gettime, [clock as usize, &raw mut time as usize, 0, 0, 0, 0]) == 0 }
}

/// The moment at which `clock` will show `until`.
pub(super) fn moment_of(me: &mut Token, clock: clockid_t, until: &timespec) -> Moment {
    let until = nanoseconds(until);
    if is_virtual(me) {
        let shown = shown(me, clock).unwrap_or(0);
        let clock = &me.run().sched.clock;
        // What is over stays in its order: of two deadlines the earlier one comes first.
        return match until.checked_sub(shown) {
            Some(ahead) => clock.after(ahead),
            None => Moment(clock.now().0.saturating_sub(shown - until)),
        };
    }
    let mut now = timespec { tv_sec: 0, tv_nsec: 0 };
    let unmanaged = Unmanaged::enter();
    // SAFETY: the call writes to the local.
    unsafe { real::clock_gettime(clock, &raw mut now) };
    drop(unmanaged);
    me.run().sched.clock.after(until.saturating_sub(nanoseconds(&now)))
}

/// The moment that lies `length` ahead.
pub(super) fn moment_after(me: &mut Token, length: &timespec) -> Moment {
    me.run().sched.clock.after(nanoseconds(length))
}

/// When a moment of virtual time is as far away by the kernel's monotonic clock.
pub(super) fn real_moment(me: &mut Token, moment: Moment) -> timespec {
    let mut now = timespec { tv_sec: 0, tv_nsec: 0 };
    let unmanaged = Unmanaged::enter();
    // SAFETY: the call writes to the local.
    unsafe { real::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    drop(unmanaged);
    let ahead = moment.0.saturating_sub(me.run().sched.clock.now().0);
    let until = nanoseconds(&now).saturating_add(ahead);
    timespec { tv_sec: (until / 1_000_000_000) as i64, tv_nsec: (until % 1_000_000_000) as i64 }
}

/// What `clock` shows to a reader; nothing if it is not ours.
fn look(me: &mut Token, clock: clockid_t) -> Option<u64> {
    me.run().looks += 1;
    if me.run().looks > PATIENCE {
        step(me, Event::local(EventKind::Yield));
    }
    let run = me.run();
    run.sched.look(run.limits.last_change());
    shown(me, clock)
}

/// What the processor's counter shows; nothing when the program sees real time.
pub(crate) fn virtual_ticks(me: &mut Token) -> Option<u64> {
    if is_virtual(me) { look(me, libc::CLOCK_MONOTONIC) } else { None }
}

interpose! {
    fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int, |me| {
        if !is_virtual(me) {
            return real::clock_gettime(clock, time);
        }
        if !(libc::CLOCK_REALTIME..=libc::CLOCK_BOOTTIME).contains(&clock) && !exists(clock) {
            return fail(libc::EINVAL);
        }
        let Some(now) = look(me, clock) else { return real::clock_gettime(clock, time) };
        *time = timespec_of(now);
        0
    }

    fn gettimeofday(time: *mut timeval, zone: *mut c_void) -> c_int, |me| {
        if !is_virtual(me) {
            return real::gettimeofday(time, zone);
        }
        let now = timespec_of(look(me, libc::CLOCK_REALTIME).unwrap_or(0));
        *time = timeval { tv_sec: now.tv_sec, tv_usec: now.tv_nsec / 1000 };
        0
    }

    fn time(result: *mut time_t) -> time_t, |me| {
        if !is_virtual(me) {
            return real::time(result);
        }
        let now = timespec_of(look(me, libc::CLOCK_REALTIME).unwrap_or(0)).tv_sec;
        if !result.is_null() {
            *result = now;
        }
        now
    }

    fn timespec_get(time: *mut timespec, base: c_int) -> c_int, |me| {
        const TIME_UTC: c_int = 1;
        if !is_virtual(me) || base != TIME_UTC {
            return real::timespec_get(time, base);
        }
        *time = timespec_of(look(me, libc::CLOCK_REALTIME).unwrap_or(0));
        base
    }

    fn clock() -> libc::clock_t, |me| {
        if !is_virtual(me) {
            return real::clock();
        }
        (look(me, libc::CLOCK_PROCESS_CPUTIME_ID).unwrap_or(0) / 1000) as libc::clock_t
    }
}
