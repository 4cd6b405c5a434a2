//! Slim reader-writer locks, on the real ones through their try functions.
//!
//! What the word of such a lock says is nobody's business but the system's, so whether it is free is found out by taking
//! it for a moment: no logical thread ever waits inside the real lock, so nobody is disturbed.

use waylay_schedule::EventKind;
use waylay_scheduler::{Acquire, Key, Shares};
use windows_sys::Win32::System::Threading as real;
use windows_sys::Win32::System::Threading::SRWLOCK;

use super::interpose;
use crate::runtime::outside::{self, Act};
use crate::runtime::{Token, acquire, event_at, freed, step, taken};
use crate::watch::edge;

const READ: Shares = Shares(1);
const WRITE: Shares = Shares(2);

/// How a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Read,
    Write,
}

unsafe fn attempt(lock: *mut SRWLOCK, way: Way) -> bool {
    // SAFETY: by the caller's promise that this is a lock.
    unsafe {
        match way {
            Way::Read => real::TryAcquireSRWLockShared(lock),
            Way::Write => real::TryAcquireSRWLockExclusive(lock),
        }
    }
}

unsafe fn release(lock: *mut SRWLOCK, way: Way) {
    // SAFETY: by the caller's promise that the lock is held this way.
    unsafe {
        match way {
            Way::Read => real::ReleaseSRWLockShared(lock),
            Way::Write => real::ReleaseSRWLockExclusive(lock),
        }
    }
}

unsafe fn is_free(lock: *mut SRWLOCK, way: Way) -> bool {
    // SAFETY: by the caller's promise.
    unsafe {
        let free = attempt(lock, way);
        if free {
            release(lock, way);
        }
        free
    }
}

fn note_taken(me: &mut Token, key: Key, way: Way) {
    let (shares, held) = match way {
        Way::Read => (WRITE, waylay_accesses::Way::Shared),
        Way::Write => (Shares::ALL, waylay_accesses::Way::Exclusive),
    };
    taken(me, key, shares);
    edge::locked(me, key, held);
}

/// What a waiter of a condition variable does when it is woken.
pub(super) fn relock(lock: *mut SRWLOCK, way: Way) -> Acquire {
    let key = Key(lock as usize);
    match way {
        Way::Read => Acquire {
            event: event_at(EventKind::RwReadLock, key),
            key,
            // SAFETY: the key was made from a lock on which a thread waits, so it exists.
            is_free: |key| unsafe { is_free(key.0 as *mut SRWLOCK, Way::Read) },
        },
        Way::Write => Acquire {
            event: event_at(EventKind::RwWriteLock, key),
            key,
            // SAFETY: as above.
            is_free: |key| unsafe { is_free(key.0 as *mut SRWLOCK, Way::Write) },
        },
    }
}

pub(super) unsafe fn lock(me: &mut Token, lock: *mut SRWLOCK, way: Way) {
    let key = Key(lock as usize);
    let (kind, shares) = match way {
        Way::Read => (EventKind::RwReadLock, READ),
        Way::Write => (EventKind::RwWriteLock, WRITE),
    };
    // SAFETY: by the caller's promise.
    unsafe {
        let free = |_: &mut Token| is_free(lock, way);
        let take = |_: &mut Token| attempt(lock, way).then_some(());
        while acquire(me, event_at(kind, key), key, shares, None, free, take).is_err() {}
        note_taken(me, key, way);
    }
}

/// Takes the lock back after a wait that a wake-up ended.
pub(super) unsafe fn take_back(me: &mut Token, slim: *mut SRWLOCK, way: Way) {
    // SAFETY: by the caller's promise.
    unsafe {
        if !attempt(slim, way) {
            return lock(me, slim, way);
        }
        note_taken(me, Key(slim as usize), way);
    }
}

/// Releases the lock and makes waiters ready, without a step.
pub(super) unsafe fn unlock(me: &mut Token, lock: *mut SRWLOCK, way: Way) {
    // SAFETY: by the caller's promise.
    unsafe {
        edge::unlocked(me, Key(lock as usize));
        release(lock, way);
        if is_free(lock, Way::Write) {
            freed(me, Key(lock as usize), Shares::ALL);
        }
    }
}

unsafe fn unlock_outside(lock: *mut SRWLOCK, way: Way) {
    // SAFETY: by the caller's promise.
    unsafe { release(lock, way) };
    outside::did(Key(lock as usize), Act::Freed);
}

interpose! {
    fn AcquireSRWLockExclusive(slim: *mut SRWLOCK) -> () = real::AcquireSRWLockExclusive(slim), |me| {
        lock(me, slim, Way::Write)
    }
    fn AcquireSRWLockShared(slim: *mut SRWLOCK) -> () = real::AcquireSRWLockShared(slim), |me| {
        lock(me, slim, Way::Read)
    }
    fn TryAcquireSRWLockExclusive(slim: *mut SRWLOCK) -> bool = real::TryAcquireSRWLockExclusive(slim), |me| {
        step(me, event_at(EventKind::RwTryWriteLock, Key(slim as usize)));
        let got = attempt(slim, Way::Write);
        if got {
            note_taken(me, Key(slim as usize), Way::Write);
        }
        got
    }
    fn TryAcquireSRWLockShared(slim: *mut SRWLOCK) -> bool = real::TryAcquireSRWLockShared(slim), |me| {
        step(me, event_at(EventKind::RwTryReadLock, Key(slim as usize)));
        let got = attempt(slim, Way::Read);
        if got {
            note_taken(me, Key(slim as usize), Way::Read);
        }
        got
    }
    fn ReleaseSRWLockExclusive(slim: *mut SRWLOCK) -> () = unlock_outside(slim, Way::Write), |me| {
        unlock(me, slim, Way::Write);
        step(me, event_at(EventKind::RwWriteUnlock, Key(slim as usize)))
    }
    fn ReleaseSRWLockShared(slim: *mut SRWLOCK) -> () = unlock_outside(slim, Way::Read), |me| {
        unlock(me, slim, Way::Read);
        step(me, event_at(EventKind::RwReadUnlock, Key(slim as usize)))
    }
}
