//! Clocks: what the program reads.
//!
//! With the virtual clock every run begins at the same instant. A loop that does nothing but read a clock gives way after
//! a while, since nobody else would move otherwise.

use std::sync::OnceLock;

use waylay_control_protocol::ClockSource;
use waylay_schedule::{Event, EventKind};
use waylay_scheduler::Moment;
use windows_sys::Win32::Foundation::{FILETIME, SYSTEMTIME};
use windows_sys::Win32::System::Performance::{
    QueryPerformanceCounter as counter, QueryPerformanceFrequency,
};
use windows_sys::Win32::System::SystemInformation as real;
use windows_sys::core::BOOL;

use super::interpose;
use crate::runtime::{Token, step};

/// Where virtual wall-clock time begins, in the 100 ns of Windows since 1601: 2024-01-01 00:00:00 UTC.
const WALL: u64 = UNIX + 1_704_067_200 * 10_000_000;
/// Where Unix begins, in the same.
const UNIX: u64 = 11_644_473_600 * 10_000_000;
/// Where other virtual clocks begin: long enough after "boot" that programs may subtract a while from it.
const BOOT: u64 = 100_000 * SECOND;
const SECOND: u64 = 1_000_000_000;
const MILLISECOND: u64 = 1_000_000;
/// Nanoseconds of one tick of a file time.
const TICK: u64 = 100;
/// Looks at a clock, with no step in between, after which others get their turn.
const PATIENCE: u32 = 64;

fn is_virtual(me: &mut Token) -> bool {
    me.run().settings.clock == ClockSource::Virtual as u32
}

/// Nanoseconds since the run began, for a reader.
fn look(me: &mut Token) -> u64 {
    me.run().looks += 1;
    if me.run().looks > PATIENCE {
        step(me, Event::local(EventKind::Yield));
    }
    let run = me.run();
    run.sched.look(run.sched.steps).0
}

/// Steps of the performance counter in a second; programs ask once and keep the answer, so it stays the real one.
fn frequency() -> u64 {
    static FREQUENCY: OnceLock<u64> = OnceLock::new();
    *FREQUENCY.get_or_init(|| {
        let mut frequency = 0;
        // SAFETY: writes the local.
        unsafe { QueryPerformanceFrequency(&mut frequency) };
        (frequency as u64).max(1)
    })
}

fn to_filetime(ticks: u64) -> FILETIME {
    FILETIME { dwLowDateTime: ticks as u32, dwHighDateTime: (ticks >> 32) as u32 }
}

fn wall(me: &mut Token) -> FILETIME {
    to_filetime(WALL + look(me) / TICK)
}

/// The wall clock, in the 100 ns of Windows since 1601.
pub(super) fn wall_ticks(me: &mut Token) -> u64 {
    // SAFETY: who has the token lives.
    unsafe {
        if is_virtual(me) {
            return WALL + me.run().sched.clock.now().0 / TICK;
        }
        let mut time = FILETIME::default();
        real::GetSystemTimeAsFileTime(&mut time);
        u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime)
    }
}

/// What the processor's counter shows, one tick to the nanosecond; none when the program sees real time.
pub(crate) fn virtual_ticks(me: &mut Token) -> Option<u64> {
    is_virtual(me).then(|| BOOT + look(me))
}

/// The moment of a wall-clock time, in nanoseconds since 1970.
pub(super) fn moment_of_unix_time(me: &mut Token, nanoseconds: u64) -> Moment {
    let since_1601 = nanoseconds.saturating_add(UNIX * TICK);
    // SAFETY: the time is written into the local.
    unsafe {
        if is_virtual(me) {
            return Moment(since_1601.saturating_sub(WALL * TICK));
        }
        let mut now = FILETIME { dwLowDateTime: 0, dwHighDateTime: 0 };
        real::GetSystemTimePreciseAsFileTime(&mut now);
        let now = (u64::from(now.dwHighDateTime) << 32 | u64::from(now.dwLowDateTime)) * TICK;
        me.run().sched.clock.after(since_1601.saturating_sub(now))
    }
}

/// The moment of a time as the performance counter tells it, in nanoseconds.
pub(super) fn moment_of_counted_time(me: &mut Token, nanoseconds: u64) -> Moment {
    // SAFETY: the time is written into the local.
    unsafe {
        if is_virtual(me) {
            return Moment(nanoseconds.saturating_sub(BOOT));
        }
        let mut now = 0;
        counter(&mut now);
        let now = (now as u128 * u128::from(SECOND) / u128::from(frequency())) as u64;
        me.run().sched.clock.after(nanoseconds.saturating_sub(now))
    }
}

unsafe fn real_counter(value: *mut i64) -> BOOL {
    // SAFETY: by the caller's promise.
    unsafe { counter(value) }
}

interpose! {
    fn QueryPerformanceCounter(value: *mut i64) -> BOOL = real_counter(value), |me| {
        if !is_virtual(me) {
            return real_counter(value);
        }
        let nanoseconds = u128::from(BOOT + look(me));
        *value = (nanoseconds * u128::from(frequency()) / u128::from(SECOND)) as i64;
        1
    }

    fn GetTickCount() -> u32 = real::GetTickCount(), |me| {
        if !is_virtual(me) {
            return real::GetTickCount();
        }
        ((BOOT + look(me)) / MILLISECOND) as u32
    }

    fn GetTickCount64() -> u64 = real::GetTickCount64(), |me| {
        if !is_virtual(me) {
            return real::GetTickCount64();
        }
        (BOOT + look(me)) / MILLISECOND
    }

    fn GetSystemTimeAsFileTime(time: *mut FILETIME) -> () = real::GetSystemTimeAsFileTime(time), |me| {
        if !is_virtual(me) {
            return real::GetSystemTimeAsFileTime(time);
        }
        *time = wall(me)
    }

    fn GetSystemTimePreciseAsFileTime(time: *mut FILETIME) -> () = real::GetSystemTimePreciseAsFileTime(time), |me| {
        if !is_virtual(me) {
            return real::GetSystemTimePreciseAsFileTime(time);
        }
        *time = wall(me)
    }

    fn GetSystemTime(time: *mut SYSTEMTIME) -> () = real::GetSystemTime(time), |me| {
        if !is_virtual(me) {
            return real::GetSystemTime(time);
        }
        let now = wall(me);
        windows_sys::Win32::System::Time::FileTimeToSystemTime(&now, time);
    }
}
