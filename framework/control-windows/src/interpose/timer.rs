//! Waitable timers: what Rust's standard library sleeps with. They go off in virtual time, like sleeps.
//!
//! The real timer is set as well, for threads that are not under control; nobody else looks at it. One that calls a
//! function when it goes off is the system's.

use core::ffi::c_void;

use waylay_schedule::EventKind;
use waylay_scheduler::{Key, Moment, Shares};
use windows_sys::Win32::Foundation::{HANDLE, WAIT_EVENT, WAIT_OBJECT_0, WAIT_TIMEOUT};
use windows_sys::Win32::Security::SECURITY_ATTRIBUTES;
use windows_sys::Win32::System::Threading as real;
use windows_sys::Win32::System::Threading::{
    CREATE_WAITABLE_TIMER_MANUAL_RESET, PTIMERAPCROUTINE, REASON_CONTEXT,
};
use windows_sys::core::{BOOL, PCWSTR};

use super::clock::wall_ticks;
use super::handle::Kind;
use super::{NANOSECONDS, deadline, interpose};
use crate::me::keep_error;
use crate::runtime::{Token, Waited, event_at, step, wait, wake};

/// Nanoseconds of one tick of a file time.
const TICK: u64 = 100;

/// One timer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Timer {
    /// Once it has gone off it stays so, until it is set anew.
    manual: bool,
    /// When it goes off; none when it is not set.
    due: Option<Moment>,
    /// Nanoseconds until it goes off again; none when it does not.
    period: u64,
}

impl Timer {
    pub(crate) fn is_due(&self, now: Moment) -> bool {
        self.due.is_some_and(|due| due <= now)
    }

    /// When it will go off, if it has not.
    pub(crate) fn ahead(&self, now: Moment) -> Option<Moment> {
        self.due.filter(|&due| due > now)
    }

    /// Somebody waited for it, and it had gone off.
    pub(crate) fn take(&mut self) {
        if !self.manual {
            let again = self.due.filter(|_| self.period > 0);
            self.due = again.map(|due| Moment(due.0.saturating_add(self.period)));
        }
    }
}

/// The time of the run.
pub(super) fn now(me: &mut Token) -> Moment {
    me.run().sched.clock.now()
}

/// Waits for a timer.
///
/// # Safety
/// The timer is one of the run.
pub(super) unsafe fn wait_for(me: &mut Token, key: Key, timer: *mut Timer, milliseconds: u32) -> WAIT_EVENT {
    // SAFETY: by the caller's promise.
    unsafe {
        let limit = deadline(me, milliseconds);
        if milliseconds == 0 || (*timer).is_due(now(me)) {
            step(me, event_at(EventKind::SemTryWait, key));
        }
        loop {
            if (*timer).is_due(now(me)) {
                (*timer).take();
                return WAIT_OBJECT_0;
            }
            if limit.is_some_and(|limit| limit <= now(me)) {
                return WAIT_TIMEOUT;
            }
            let until = (*timer).due.into_iter().chain(limit).min();
            // Whoever sets it wakes us; then there is another moment to wait for.
            let _: Waited = wait(me, event_at(EventKind::SemWait, key), key, Shares::ALL, until, None);
        }
    }
}

/// When a timer is to go off: a distance if it is negative, else a moment of the wall clock.
fn moment(me: &mut Token, due: i64) -> Moment {
    let ticks = if due < 0 { due.unsigned_abs() } else { (due as u64).saturating_sub(wall_ticks(me)) };
    me.run().sched.clock.after(ticks.saturating_mul(TICK))
}

fn create(me: &mut Token, manual: bool, named: bool, work: impl FnOnce() -> HANDLE) -> HANDLE {
    let handle = work();
    keep_error(me);
    // One with a name may be another process's.
    if !handle.is_null() && !named {
        me.run().system.handles.add_timer(handle, Timer { manual, ..Timer::default() });
    }
    handle
}

/// Sets a timer, or clears it.
unsafe fn set(
    me: &mut Token,
    handle: HANDLE,
    (due, period): (*const i64, i32),
    calls: bool,
    work: impl FnOnce() -> BOOL,
) -> BOOL {
    // SAFETY: by the caller's promise.
    unsafe {
        let result = work();
        keep_error(me);
        let entry = me.run().system.handles.entry(handle);
        let Kind::Timer(timer) = entry.kind else {
            me.run().note_uncontrolled();
            return result;
        };
        if calls {
            me.run().note_uncontrolled();
            me.run().system.handles.leave_to_system(handle);
            return result;
        }
        if result != 0 && !due.is_null() {
            let due = Some(moment(me, due.read_unaligned()));
            let period = u64::try_from(period).unwrap_or(0) * NANOSECONDS;
            *timer = Timer { due, period, ..*timer };
            wake(me, entry.key, u32::MAX);
            let run = me.run();
            run.system.handles.timer_was_set(entry.key, &mut run.sched);
        }
        let run = me.run();
        run.system.handles.changed(handle, &mut run.sched);
        step(me, event_at(EventKind::SemPost, entry.key));
        result
    }
}

interpose! {
    fn CreateWaitableTimerW(security: *const SECURITY_ATTRIBUTES, manual: BOOL, name: PCWSTR) -> HANDLE
        = real::CreateWaitableTimerW(security, manual, name), |me| {
        create(me, manual != 0, !name.is_null(), || real::CreateWaitableTimerW(security, manual, name))
    }

    fn CreateWaitableTimerExW(
        security: *const SECURITY_ATTRIBUTES,
        name: PCWSTR,
        flags: u32,
        access: u32,
    ) -> HANDLE = real::CreateWaitableTimerExW(security, name, flags, access), |me| {
        let manual = flags & CREATE_WAITABLE_TIMER_MANUAL_RESET != 0;
        create(me, manual, !name.is_null(), || real::CreateWaitableTimerExW(security, name, flags, access))
    }

    fn SetWaitableTimer(
        timer: HANDLE,
        due: *const i64,
        period: i32,
        function: PTIMERAPCROUTINE,
        argument: *const c_void,
        resume: BOOL,
    ) -> BOOL = real::SetWaitableTimer(timer, due, period, function, argument, resume), |me| {
        set(me, timer, (due, period), function.is_some(), || {
            real::SetWaitableTimer(timer, due, period, function, argument, resume)
        })
    }

    fn SetWaitableTimerEx(
        timer: HANDLE,
        due: *const i64,
        period: i32,
        function: PTIMERAPCROUTINE,
        argument: *const c_void,
        context: *const REASON_CONTEXT,
        delay: u32,
    ) -> BOOL = real::SetWaitableTimerEx(timer, due, period, function, argument, context, delay), |me| {
        set(me, timer, (due, period), function.is_some(), || {
            real::SetWaitableTimerEx(timer, due, period, function, argument, context, delay)
        })
    }

    fn CancelWaitableTimer(timer: HANDLE) -> BOOL = real::CancelWaitableTimer(timer), |me| {
        let result = real::CancelWaitableTimer(timer);
        keep_error(me);
        if let Kind::Timer(timer) = me.run().system.handles.entry(timer).kind && !(*timer).is_due(now(me)) {
            (*timer).due = None;
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_went_off_is_taken_once_unless_it_is_reset_by_hand() {
        let set = Timer { due: Some(Moment(100)), ..Timer::default() };
        assert_eq!((set.is_due(Moment(99)), set.ahead(Moment(99))), (false, Some(Moment(100))));
        assert_eq!((set.is_due(Moment(100)), set.ahead(Moment(100))), (true, None));
        let after = |mut timer: Timer| {
            timer.take();
            timer.due
        };
        assert_eq!(after(set), None);
        assert_eq!(after(Timer { manual: true, ..set }), Some(Moment(100)));
        assert_eq!(after(Timer { period: 40, ..set }), Some(Moment(140)));
    }
}
