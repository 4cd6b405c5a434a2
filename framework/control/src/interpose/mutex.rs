//! Mutexes: `pthread_mutex_*`.
//!
//! The real mutex is used throughout, through its trylock: recursion, error checking, robustness and priority
//! inheritance keep libc's meaning, and the owner is right in the debugger.

use core::sync::atomic::{AtomicU32, Ordering};

use libc::{EBUSY, EDEADLK, EINVAL, ENOTRECOVERABLE, ETIMEDOUT, clockid_t, pthread_mutex_t, timespec};
use waylay_schedule::EventKind;

use super::clock::{has_deadlines, has_nanoseconds, moment_of};
use super::interpose;
use crate::instrument::{Way, edge};
use crate::runtime::outside::{self, Act};
use crate::runtime::{Waited, acquire, acquire_from_outside, event_at, freed, step, taken, Token};
use crate::sched::{Acquire, Key, Moment, Shares};

/// Offsets in glibc's `pthread_mutex_t` on x86-64; part of its ABI because initialisers are static.
const LOCK: usize = 0;
const COUNT: usize = 4;
const OWNER: usize = 8;
const KIND: usize = 16;
const RECURSIVE: u32 = 1;
const ERROR_CHECK: u32 = 2;
/// The part of the lock word of a robust mutex that names its owner.
const OWNER_BITS: u32 = 0x3fff_ffff;
/// Bit of the kind that says that it was made for several processes.
const SHARED: u32 = 128;
/// Bit of the lock word by which the kernel says that the owner of a robust mutex died.
const OWNER_DIED: u32 = 1 << 30;
/// Bit of the kind of a mutex with a priority ceiling, and where its lock word has the ceiling, whoever holds it.
const PROTECTS: u32 = 64;
const CEILING: u32 = 0xfff8_0000;

unsafe fn word(mutex: *const pthread_mutex_t, offset: usize) -> u32 {
    // SAFETY: inside the mutex, which the caller vouches for; other kernel threads may write it.
    unsafe { (*mutex.byte_add(offset).cast::<AtomicU32>()).load(Ordering::Relaxed) }
}

/// What says who holds a mutex; 0 when it is free.
unsafe fn lock_word(mutex: *const pthread_mutex_t) -> u32 {
    // SAFETY: by the caller's promise that this is a mutex.
    unsafe { word(mutex, LOCK) & if word(mutex, KIND) & PROTECTS != 0 { !CEILING } else { !0 } }
}

/// The kernel's number of the thread that holds a mutex; 0 when it is free.
pub(crate) unsafe fn owner_of(mutex: *const pthread_mutex_t) -> u32 {
    // SAFETY: by the caller's promise that this is a mutex.
    unsafe { if lock_word(mutex) == 0 { 0 } else { word(mutex, OWNER) } }
}

/// Whether `me` might get the mutex now. The owner of a recursive one can, and of an error-checking one gets its
/// error at once.
unsafe fn is_free(me: &mut Token, mutex: *const pthread_mutex_t) -> bool {
    // SAFETY: by the caller's promise.
    unsafe {
        let lock = lock_word(mutex);
        lock == 0 || lock & OWNER_DIED != 0 || word(mutex, OWNER) == (*me.thread()).kernel_id as u32
    }
}

fn nobody_holds(key: Key) -> bool {
    let mutex = key.0 as *const pthread_mutex_t;
    // SAFETY: the key was made from a mutex on which a thread waits, so it exists.
    let lock = unsafe { lock_word(mutex) };
    lock == 0 || lock & OWNER_DIED != 0
}

/// What a waiter of a condition variable does when it is woken.
pub(super) fn relock(mutex: *mut pthread_mutex_t) -> Acquire {
    let key = Key(mutex as usize);
    Acquire { event: event_at(EventKind::MutexLock, key), key, is_free: nobody_holds }
}

/// Locks for `me`, waiting as long as it takes or until the deadline.
pub(super) unsafe fn lock(me: &mut Token, mutex: *mut pthread_mutex_t, deadline: Option<Moment>) -> i32 {
    let key = Key(mutex as usize);
    let event = event_at(EventKind::MutexLock, key);
    // SAFETY: by the caller's promise.
    unsafe {
        loop {
            let free = |me: &mut Token| is_free(me, mutex);
            let attempt = |me: &mut Token| attempt(me, mutex);
            let got = match is_outside(mutex) {
                true => acquire_from_outside(me, event, deadline, attempt),
                false => acquire(me, event, key, Shares::ALL, deadline, free, attempt),
            };
            match got {
                Ok(result) => {
                    taken(me, key, Shares::ALL);
                    note_locked(me, key, result);
                    return result;
                }
                Err(Waited::TimedOut) => return ETIMEDOUT,
                // Locking a mutex is no cancellation point.
                Err(Waited::Interrupted | Waited::Done) => {}
            }
        }
    }
}

/// libc looks at the time only where it has to wait.
unsafe fn lock_until(
    me: &mut Token,
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    until: *const timespec,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        let valid = has_nanoseconds(&*until);
        let deadline = if valid { moment_of(me, clock, until) } else { Moment(0) };
        match lock(me, mutex, Some(deadline)) {
            ETIMEDOUT if !valid => EINVAL,
            result => result,
        }
    }
}

/// Whether processes that are not under control may hold it.
unsafe fn is_outside(mutex: *const pthread_mutex_t) -> bool {
    // SAFETY: by the caller's promise.
    unsafe { word(mutex, KIND) & SHARED != 0 && outside::has_started_processes() }
}

#[inline]
unsafe fn attempt(me: &mut Token, mutex: *mut pthread_mutex_t) -> Option<i32> {
    // SAFETY: by the caller's promise.
    unsafe {
        let result = real::pthread_mutex_trylock(mutex);
        if result == ENOTRECOVERABLE && word(mutex, LOCK) & OWNER_BITS == (*me.thread()).kernel_id as u32 {
            // libc's trylock keeps what cannot be recovered; its lock, for which this stands, does not.
            (*mutex.byte_add(LOCK).cast::<AtomicU32>()).store(0, Ordering::Release);
        }
        if result != EBUSY {
            return Some(result);
        }
        let mine = word(mutex, OWNER) == (*me.thread()).kernel_id as u32;
        (mine && word(mutex, KIND) & 3 == ERROR_CHECK).then_some(EDEADLK)
    }
}

/// Takes the mutex back after a wait on a condition variable that a wake-up ended.
pub(super) unsafe fn take_back(me: &mut Token, mutex: *mut pthread_mutex_t) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        match attempt(me, mutex) {
            Some(result) => {
                taken(me, Key(mutex as usize), Shares::ALL);
                note_locked(me, Key(mutex as usize), result);
                result
            }
            None => lock(me, mutex, None),
        }
    }
}

/// Whoever gets a mutex of a thread that died has it too.
pub(super) fn note_locked(me: &mut Token, key: Key, result: i32) {
    if result == 0 || result == libc::EOWNERDEAD {
        edge::locked(me, key, Way::Exclusive);
    }
}

/// Unlocks and makes waiters ready, without a step.
#[inline]
pub(super) unsafe fn unlock(me: &mut Token, mutex: *mut pthread_mutex_t) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        // Known before: to read the lock word right after an atomic operation on it would wait for that.
        let last = word(mutex, KIND) & 3 != RECURSIVE || word(mutex, COUNT) == 1;
        let result = real::pthread_mutex_unlock(mutex);
        if result == 0 {
            edge::unlocked(me, Key(mutex as usize));
        }
        if result == 0 && last {
            freed(me, Key(mutex as usize), Shares::ALL);
        }
        result
    }
}

interpose! {
    fn pthread_mutex_lock(mutex: *mut pthread_mutex_t) -> i32, |me| { lock(me, mutex, None) }

    fn pthread_mutex_trylock(mutex: *mut pthread_mutex_t) -> i32, |me| {
        let key = Key(mutex as usize);
        step(me, event_at(EventKind::MutexTryLock, key));
        let result = real::pthread_mutex_trylock(mutex);
        if result != EBUSY {
            taken(me, key, Shares::ALL);
        }
        note_locked(me, key, result);
        result
    }

    fn pthread_mutex_timedlock(mutex: *mut pthread_mutex_t, until: *const timespec) -> i32, |me| {
        lock_until(me, mutex, libc::CLOCK_REALTIME, until)
    }

    fn pthread_mutex_clocklock(mutex: *mut pthread_mutex_t, clock: clockid_t, until: *const timespec) -> i32, |me| {
        if !has_deadlines(clock) {
            return EINVAL;
        }
        lock_until(me, mutex, clock, until)
    }

    fn pthread_mutex_unlock(mutex: *mut pthread_mutex_t) -> i32, outside outside::did(Key(mutex as usize), Act::Freed), |me| {
        let result = unlock(me, mutex);
        step(me, event_at(EventKind::MutexUnlock, Key(mutex as usize)));
        result
    }
}
