//! Reader-writer locks: `pthread_rwlock_*`, on the real lock through its try functions.

use core::sync::atomic::{AtomicU32, Ordering};

use libc::{EBUSY, EDEADLK, ETIMEDOUT, clockid_t, pthread_rwlock_t, timespec};
use waylay_schedule::EventKind;

use super::clock::{has_deadlines, has_nanoseconds, moment_of};
use super::interpose;
use crate::instrument::{self, edge};
use crate::runtime::outside::{self, Act};
use crate::runtime::{Logical, Waited, acquire, acquire_from_outside, event_at, freed, step, taken};
use crate::sched::{Key, Moment, Shares};

/// Offsets in glibc's `pthread_rwlock_t` on x86-64, and the bits of its first word: a writer holds it, and from bit
/// 3 on the number of readers.
const READERS: usize = 0;
const WRITER: usize = 24;
const SHARED: usize = 28;
const WRITE_LOCKED: u32 = 2;
const READER_SHIFT: u32 = 3;

const READ: Shares = Shares(1);
const WRITE: Shares = Shares(2);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Read,
    Write,
}

unsafe fn word(lock: *const pthread_rwlock_t, offset: usize) -> u32 {
    // SAFETY: inside the lock, which the caller vouches for; other kernel threads may write it.
    unsafe { (*lock.byte_add(offset).cast::<AtomicU32>()).load(Ordering::Relaxed) }
}

unsafe fn is_free(lock: *const pthread_rwlock_t, way: Way) -> bool {
    // SAFETY: by the caller's promise.
    let state = unsafe { word(lock, READERS) };
    state & WRITE_LOCKED == 0 && (way == Way::Read || state >> READER_SHIFT == 0)
}

fn note_taken(me: *mut Logical, key: Key, way: Way) {
    let (shares, held) = match way {
        Way::Read => (WRITE, instrument::Way::Shared),
        Way::Write => (Shares::ALL, instrument::Way::Exclusive),
    };
    // SAFETY: only called by the running thread.
    unsafe {
        edge::locked(me, key, held);
        taken(key, shares);
    }
}

unsafe fn lock(me: *mut Logical, lock: *mut pthread_rwlock_t, way: Way, deadline: Option<Moment>) -> i32 {
    let key = Key(lock as usize);
    let (kind, shares) = match way {
        Way::Read => (EventKind::RwReadLock, READ),
        Way::Write => (EventKind::RwWriteLock, WRITE),
    };
    // SAFETY: by the caller's promise.
    unsafe {
        let mine = || is_free(lock, Way::Read) || word(lock, WRITER) != (*me).kernel_id as u32;
        let attempt = || {
            let result = match way {
                Way::Read => real::pthread_rwlock_tryrdlock(lock),
                Way::Write => real::pthread_rwlock_trywrlock(lock),
            };
            match result {
                EBUSY if !mine() => Some(EDEADLK),
                EBUSY => None,
                other => Some(other),
            }
        };
        let is_outside = || word(lock, SHARED) != 0 && outside::has_started_processes();
        loop {
            let free = || is_free(lock, way) || !mine();
            let event = event_at(kind, key);
            let got = match is_outside() {
                true => acquire_from_outside(me, event, deadline, attempt),
                false => acquire(me, event, key, shares, deadline, free, attempt),
            };
            match got {
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

/// libc looks at clock and time whether or not it has to wait.
unsafe fn lock_until(
    me: *mut Logical,
    l: *mut pthread_rwlock_t,
    way: Way,
    clock: clockid_t,
    until: *const timespec,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        if !has_nanoseconds(&*until) || !has_deadlines(clock) {
            return libc::EINVAL;
        }
        lock(me, l, way, Some(moment_of(clock, until)))
    }
}

unsafe fn try_lock(me: *mut Logical, lock: *mut pthread_rwlock_t, way: Way) -> i32 {
    let key = Key(lock as usize);
    // SAFETY: by the caller's promise.
    unsafe {
        let result = match way {
            Way::Read => {
                step(me, event_at(EventKind::RwTryReadLock, key));
                real::pthread_rwlock_tryrdlock(lock)
            }
            Way::Write => {
                step(me, event_at(EventKind::RwTryWriteLock, key));
                real::pthread_rwlock_trywrlock(lock)
            }
        };
        if result == 0 {
            note_taken(me, key, way);
        }
        result
    }
}

interpose! {
    fn pthread_rwlock_rdlock(l: *mut pthread_rwlock_t) -> i32, |me| { lock(me, l, Way::Read, None) }
    fn pthread_rwlock_wrlock(l: *mut pthread_rwlock_t) -> i32, |me| { lock(me, l, Way::Write, None) }
    fn pthread_rwlock_tryrdlock(l: *mut pthread_rwlock_t) -> i32, |me| { try_lock(me, l, Way::Read) }
    fn pthread_rwlock_trywrlock(l: *mut pthread_rwlock_t) -> i32, |me| { try_lock(me, l, Way::Write) }

    fn pthread_rwlock_timedrdlock(l: *mut pthread_rwlock_t, until: *const timespec) -> i32, |me| {
        lock_until(me, l, Way::Read, libc::CLOCK_REALTIME, until)
    }
    fn pthread_rwlock_timedwrlock(l: *mut pthread_rwlock_t, until: *const timespec) -> i32, |me| {
        lock_until(me, l, Way::Write, libc::CLOCK_REALTIME, until)
    }
    fn pthread_rwlock_clockrdlock(l: *mut pthread_rwlock_t, clock: clockid_t, until: *const timespec) -> i32, |me| {
        lock_until(me, l, Way::Read, clock, until)
    }
    fn pthread_rwlock_clockwrlock(l: *mut pthread_rwlock_t, clock: clockid_t, until: *const timespec) -> i32, |me| {
        lock_until(me, l, Way::Write, clock, until)
    }

    fn pthread_rwlock_unlock(l: *mut pthread_rwlock_t) -> i32, outside outside::did(Key(l as usize), Act::Freed), |me| {
        let key = Key(l as usize);
        let written = word(l, READERS) & WRITE_LOCKED != 0;
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
