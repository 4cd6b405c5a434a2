//! Condition variables. The real one is never waited on by logical threads. Which waiter a wake-up reaches is the one
//! that has waited longest.

use waylay_schedule::{Event, EventKind, ObjectId};
use waylay_scheduler::{Key, Shares};
use windows_sys::Win32::Foundation::ERROR_TIMEOUT;
use windows_sys::Win32::System::Threading as real;
use windows_sys::Win32::System::Threading::{
    CONDITION_VARIABLE, CONDITION_VARIABLE_LOCKMODE_SHARED, CRITICAL_SECTION, SRWLOCK,
};
use windows_sys::core::BOOL;

use super::slim::Way;
use super::{deadline, interpose, section, slim};
use crate::me::fail;
use crate::runtime::outside::{self, Act};
use crate::runtime::{Waited, event_at, step, wait, wake};
use crate::watch::edge;

unsafe fn sleep_outside_section(
    condition: *mut CONDITION_VARIABLE,
    section: *mut CRITICAL_SECTION,
    milliseconds: u32,
) -> BOOL {
    outside::waits();
    outside::did(Key(section as usize), Act::Freed);
    // SAFETY: by the caller's promise.
    unsafe { real::SleepConditionVariableCS(condition, section, milliseconds) }
}

unsafe fn sleep_outside_slim(
    condition: *mut CONDITION_VARIABLE,
    slim: *mut SRWLOCK,
    milliseconds: u32,
    flags: u32,
) -> BOOL {
    outside::waits();
    outside::did(Key(slim as usize), Act::Freed);
    // SAFETY: by the caller's promise.
    unsafe { real::SleepConditionVariableSRW(condition, slim, milliseconds, flags) }
}

unsafe fn wake_outside(condition: *mut CONDITION_VARIABLE, count: u32) {
    outside::did(Key(condition as usize), Act::Woken(count));
    // SAFETY: by the caller's promise.
    unsafe {
        match count {
            1 => real::WakeConditionVariable(condition),
            _ => real::WakeAllConditionVariable(condition),
        }
    }
}

interpose! {
    fn SleepConditionVariableCS(
        condition: *mut CONDITION_VARIABLE,
        held: *mut CRITICAL_SECTION,
        milliseconds: u32,
    ) -> BOOL = sleep_outside_section(condition, held, milliseconds), |me| {
        let key = Key(condition as usize);
        let event = Event::cond_wait(ObjectId(key.0 as u64), ObjectId(held as u64));
        step(me, event);
        section::unlock(me, held);
        let until = deadline(me, milliseconds);
        if wait(me, event, key, Shares::ALL, until, Some(section::relock(held))) == Waited::TimedOut {
            section::lock(me, held);
            fail(me, ERROR_TIMEOUT);
            return 0;
        }
        edge::takes_over(me, key);
        section::take_back(me, held);
        1
    }

    fn SleepConditionVariableSRW(
        condition: *mut CONDITION_VARIABLE,
        held: *mut SRWLOCK,
        milliseconds: u32,
        flags: u32,
    ) -> BOOL = sleep_outside_slim(condition, held, milliseconds, flags), |me| {
        let way = if flags & CONDITION_VARIABLE_LOCKMODE_SHARED != 0 { Way::Read } else { Way::Write };
        let key = Key(condition as usize);
        let event = Event::cond_wait(ObjectId(key.0 as u64), ObjectId(held as u64));
        step(me, event);
        slim::unlock(me, held, way);
        let until = deadline(me, milliseconds);
        if wait(me, event, key, Shares::ALL, until, Some(slim::relock(held, way))) == Waited::TimedOut {
            slim::lock(me, held, way);
            fail(me, ERROR_TIMEOUT);
            return 0;
        }
        edge::takes_over(me, key);
        slim::take_back(me, held, way);
        1
    }

    fn WakeConditionVariable(condition: *mut CONDITION_VARIABLE) -> () = wake_outside(condition, 1), |me| {
        let key = Key(condition as usize);
        edge::hands_over(me, key);
        wake(me, key, 1);
        if outside::may_wait() {
            real::WakeConditionVariable(condition);
        }
        step(me, event_at(EventKind::CondSignal, key))
    }

    fn WakeAllConditionVariable(condition: *mut CONDITION_VARIABLE) -> () = wake_outside(condition, u32::MAX), |me| {
        let key = Key(condition as usize);
        edge::hands_over(me, key);
        wake(me, key, u32::MAX);
        if outside::may_wait() {
            real::WakeAllConditionVariable(condition);
        }
        step(me, event_at(EventKind::CondBroadcast, key))
    }
}
