//! Reader-writer locks: `pthread_rwlock_*`, on the real lock through its try functions.

use core::sync::atomic::{AtomicU32, Ordering};

use libc::{EBUSY, EDEADLK, ETIMEDOUT, clockid_t, pthread_rwlock_t, timespec};
use waylay_runtime::posix::rwlock::{RwLock, Way, lock, try_lock, unlock};

use super::clock::{has_deadlines, has_nanoseconds, moment_of};
use super::interpose;
use crate::runtime::outside::{self, Act};
use crate::runtime::{Logical, Token};
use crate::sched::Key;

/// Offsets in glibc's `pthread_rwlock_t` on x86-64, and the bits of its first word: a writer holds it, and from bit
/// 3 on the number of readers.
const READERS: usize = 0;
const WRITER: usize = 24;
const SHARED: usize = 28;
const WRITE_LOCKED: u32 = 2;
const READER_SHIFT: u32 = 3;

/// A lock, by its address.
#[derive(Clone, Copy)]
struct Lock(*mut pthread_rwlock_t);

impl Lock {
    /// # Safety
    /// The lock exists for as long as this value is used.
    unsafe fn at(lock: *mut pthread_rwlock_t) -> Lock {
        Lock(lock)
    }

    fn word(self, offset: usize) -> u32 {
        // SAFETY: inside the lock, which exists; other kernel threads may write it.
        unsafe { (*self.0.byte_add(offset).cast::<AtomicU32>()).load(Ordering::Relaxed) }
    }
}

impl RwLock for Lock {
    type Thread = Logical;
    const TIMED_OUT: i32 = ETIMEDOUT;

    fn key(self) -> Key {
        Key(self.0 as usize)
    }

    #[inline]
    fn is_free(self, way: Way) -> bool {
        let state = self.word(READERS);
        state & WRITE_LOCKED == 0 && (way == Way::Read || state >> READER_SHIFT == 0)
    }

    #[inline]
    fn attempt(self, way: Way) -> i32 {
        // SAFETY: the lock exists.
        unsafe {
            match way {
                Way::Read => real::pthread_rwlock_tryrdlock(self.0),
                Way::Write => real::pthread_rwlock_trywrlock(self.0),
            }
        }
    }

    #[inline]
    fn give_back(self) -> i32 {
        // SAFETY: the lock exists.
        unsafe { real::pthread_rwlock_unlock(self.0) }
    }

    #[inline]
    fn judge(self, me: &Token, result: i32) -> Option<i32> {
        match result {
            EBUSY if self.refuses(me) => Some(EDEADLK),
            EBUSY => None,
            other => Some(other),
        }
    }

    /// Its writer is told so.
    #[inline]
    fn refuses(self, me: &Token) -> bool {
        // SAFETY: who has the token lives.
        !self.is_free(Way::Read) && self.word(WRITER) == unsafe { (*me.thread()).kernel_id } as u32
    }

    #[inline]
    fn is_beyond(self) -> bool {
        self.word(SHARED) != 0 && outside::may_share()
    }
}

/// libc looks at clock and time whether or not it has to wait.
unsafe fn lock_until(
    me: &mut Token,
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
        let deadline = moment_of(me, clock, &*until);
        lock(me, Lock::at(l), way, Some(deadline))
    }
}

interpose! {
    fn pthread_rwlock_rdlock(l: *mut pthread_rwlock_t) -> i32, |me| { lock(me, Lock::at(l), Way::Read, None) }
    fn pthread_rwlock_wrlock(l: *mut pthread_rwlock_t) -> i32, |me| { lock(me, Lock::at(l), Way::Write, None) }
    fn pthread_rwlock_tryrdlock(l: *mut pthread_rwlock_t) -> i32, |me| { try_lock(me, Lock::at(l), Way::Read) }
    fn pthread_rwlock_trywrlock(l: *mut pthread_rwlock_t) -> i32, |me| { try_lock(me, Lock::at(l), Way::Write) }

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
        unlock(me, Lock::at(l))
    }
}
