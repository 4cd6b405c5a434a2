//! Reader-writer locks, on the real ones through their try functions.
//!
//! Whether one is free is found out by taking it for a moment: no logical thread ever waits inside the real lock, so nobody
//! is disturbed.

use core::ffi::c_int;

use waylay_schedule::EventKind;
use waylay_scheduler::{Key, Moment, Shares};

use super::{EBUSY, ETIMEDOUT, Timespec, moment_of};
use crate::interpose::interpose_foreign;
use crate::runtime::outside::{self, Act};
use crate::runtime::{Logical, Waited, acquire, event_at, freed, step, taken};
use crate::watch::edge;

type Lock = isize;

const READ: Shares = Shares(1);
const WRITE: Shares = Shares(2);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Read,
    Write,
}

unsafe fn attempt(lock: *mut Lock, way: Way) -> c_int {
    // SAFETY: by the caller's promise that this is a lock.
    unsafe {
        match way {
            Way::Read => real::pthread_rwlock_tryrdlock(lock),
            Way::Write => real::pthread_rwlock_trywrlock(lock),
        }
    }
}

unsafe fn is_free(lock: *mut Lock, way: Way) -> bool {
    // SAFETY: by the caller's promise.
    unsafe {
        match attempt(lock, way) {
            0 => real::pthread_rwlock_unlock(lock) == 0,
            // What is no lock says so to who takes it.
            result => result != EBUSY,
        }
    }
}

unsafe fn note_taken(me: *mut Logical, key: Key, way: Way) {
    let (shares, held) = match way {
        Way::Read => (WRITE, waylay_accesses::Way::Shared),
        Way::Write => (Shares::ALL, waylay_accesses::Way::Exclusive),
    };
    // SAFETY: only called by the running thread.
    unsafe {
        taken(key, shares);
        edge::locked(me, key, held);
    }
}

unsafe fn lock(me: *mut Logical, lock: *mut Lock, way: Way, deadline: Option<Moment>) -> c_int {
    let key = Key(lock as usize);
    let (kind, shares) = match way {
        Way::Read => (EventKind::RwReadLock, READ),
        Way::Write => (EventKind::RwWriteLock, WRITE),
    };
    // SAFETY: by the caller's promise.
    unsafe {
        let take = || Some(attempt(lock, way)).filter(|&result| result != EBUSY);
        loop {
            match acquire(me, event_at(kind, key), key, shares, deadline, || is_free(lock, way), take) {
                Ok(result) => {
                    if result == 0 {
                        note_taken(me, key, way);
                    }
                    return result;
                }
                Err(Waited::TimedOut) => return ETIMEDOUT,
                Err(Waited::Interrupted | Waited::Done) => {}
            }
        }
    }
}

unsafe fn try_lock(me: *mut Logical, lock: *mut Lock, way: Way) -> c_int {
    let key = Key(lock as usize);
    let kind = if way == Way::Read { EventKind::RwTryReadLock } else { EventKind::RwTryWriteLock };
    // SAFETY: by the caller's promise.
    unsafe {
        step(me, event_at(kind, key));
        let result = attempt(lock, way);
        if result == 0 {
            note_taken(me, key, way);
        }
        result
    }
}

unsafe fn unlock_outside(lock: *mut Lock) -> c_int {
    // SAFETY: by the caller's promise.
    let result = unsafe { real::pthread_rwlock_unlock(lock) };
    outside::did(Key(lock as usize), Act::Freed);
    result
}

interpose_foreign! {
    fn pthread_rwlock_rdlock(l: *mut Lock) -> c_int = real::pthread_rwlock_rdlock(l), |me| {
        lock(me, l, Way::Read, None)
    }
    fn pthread_rwlock_wrlock(l: *mut Lock) -> c_int = real::pthread_rwlock_wrlock(l), |me| {
        lock(me, l, Way::Write, None)
    }
    fn pthread_rwlock_tryrdlock(l: *mut Lock) -> c_int = real::pthread_rwlock_tryrdlock(l), |me| {
        try_lock(me, l, Way::Read)
    }
    fn pthread_rwlock_trywrlock(l: *mut Lock) -> c_int = real::pthread_rwlock_trywrlock(l), |me| {
        try_lock(me, l, Way::Write)
    }
    fn pthread_rwlock_timedrdlock(l: *mut Lock, until: *const Timespec) -> c_int
        = real::pthread_rwlock_timedrdlock(l, until), |me| { lock(me, l, Way::Read, Some(moment_of(until))) }
    fn pthread_rwlock_timedwrlock(l: *mut Lock, until: *const Timespec) -> c_int
        = real::pthread_rwlock_timedwrlock(l, until), |me| { lock(me, l, Way::Write, Some(moment_of(until))) }

    fn pthread_rwlock_unlock(l: *mut Lock) -> c_int = unlock_outside(l), |me| {
        let key = Key(l as usize);
        // Readers let others read; a writer does not.
        let written = !is_free(l, Way::Read);
        let result = real::pthread_rwlock_unlock(l);
        if result == 0 {
            edge::unlocked(me, key);
        }
        if result == 0 && is_free(l, Way::Write) {
            freed(key, Shares::ALL);
        }
        step(me, event_at(if written { EventKind::RwWriteUnlock } else { EventKind::RwReadUnlock }, key));
        result
    }
}
