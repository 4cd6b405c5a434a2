//! Critical sections, on the real ones through `TryEnterCriticalSection`: recursion keeps its meaning, and the owner is
//! right in the debugger.

use core::sync::atomic::{AtomicPtr, Ordering};

use waylay_accesses::Way;
use waylay_schedule::EventKind;
use waylay_scheduler::{Acquire, Key, Shares};
use windows_sys::Win32::System::Threading as real;
use windows_sys::Win32::System::Threading::CRITICAL_SECTION;
use windows_sys::core::BOOL;

use super::interpose;
use crate::runtime::outside::{self, Act};
use crate::runtime::{Token, acquire, event_at, freed, step, taken};
use crate::watch::edge;

/// The system's number of the thread that holds a critical section; 0 when it is free.
unsafe fn owner(section: *const CRITICAL_SECTION) -> u32 {
    // SAFETY: inside the section, which the caller vouches for; other threads may write it.
    let owner =
        unsafe { (*(&raw const (*section).OwningThread).cast::<AtomicPtr<()>>()).load(Ordering::Relaxed) };
    owner as usize as u32
}

/// The same for the object of an event; none when it is free.
///
/// # Safety
/// A thread waits for the object, and it is a critical section or another lock of at least that size.
pub(crate) unsafe fn owner_of(object: usize) -> Option<u32> {
    // SAFETY: by the caller's promise.
    Some(unsafe { owner(object as *const CRITICAL_SECTION) }).filter(|&owner| owner != 0)
}

fn nobody_holds(key: Key) -> bool {
    // SAFETY: the key was made from a section on which a thread waits, so it exists.
    unsafe { owner(key.0 as *const CRITICAL_SECTION) == 0 }
}

/// What a waiter of a condition variable does when it is woken.
pub(super) fn relock(section: *mut CRITICAL_SECTION) -> Acquire {
    let key = Key(section as usize);
    Acquire { event: event_at(EventKind::MutexLock, key), key, is_free: nobody_holds }
}

fn note_taken(me: &mut Token, key: Key) {
    taken(me, key, Shares::ALL);
    edge::locked(me, key, Way::Exclusive);
}

pub(super) unsafe fn lock(me: &mut Token, section: *mut CRITICAL_SECTION) {
    let key = Key(section as usize);
    // SAFETY: by the caller's promise.
    unsafe {
        let free = |me: &mut Token| [0, (*me.thread()).number].contains(&owner(section));
        let attempt = |_: &mut Token| (real::TryEnterCriticalSection(section) != 0).then_some(());
        let event = event_at(EventKind::MutexLock, key);
        while acquire(me, event, key, Shares::ALL, None, free, attempt).is_err() {}
        note_taken(me, key);
    }
}

/// Takes the section back after a wait that a wake-up ended.
pub(super) unsafe fn take_back(me: &mut Token, section: *mut CRITICAL_SECTION) {
    // SAFETY: by the caller's promise.
    unsafe {
        if real::TryEnterCriticalSection(section) == 0 {
            return lock(me, section);
        }
        note_taken(me, Key(section as usize));
    }
}

/// Leaves the section and makes waiters ready, without a step.
pub(super) unsafe fn unlock(me: &mut Token, section: *mut CRITICAL_SECTION) {
    // SAFETY: by the caller's promise.
    unsafe {
        edge::unlocked(me, Key(section as usize));
        real::LeaveCriticalSection(section);
        if owner(section) == 0 {
            freed(me, Key(section as usize), Shares::ALL);
        }
    }
}

unsafe fn leave_outside(section: *mut CRITICAL_SECTION) {
    // SAFETY: by the caller's promise.
    unsafe { real::LeaveCriticalSection(section) };
    outside::did(Key(section as usize), Act::Freed);
}

interpose! {
    fn EnterCriticalSection(section: *mut CRITICAL_SECTION) -> () = real::EnterCriticalSection(section), |me| {
        lock(me, section)
    }

    fn TryEnterCriticalSection(section: *mut CRITICAL_SECTION) -> BOOL = real::TryEnterCriticalSection(section), |me| {
        let key = Key(section as usize);
        step(me, event_at(EventKind::MutexTryLock, key));
        let got = real::TryEnterCriticalSection(section);
        if got != 0 {
            note_taken(me, key);
        }
        got
    }

    fn LeaveCriticalSection(section: *mut CRITICAL_SECTION) -> () = leave_outside(section), |me| {
        unlock(me, section);
        step(me, event_at(EventKind::MutexUnlock, Key(section as usize)))
    }
}
