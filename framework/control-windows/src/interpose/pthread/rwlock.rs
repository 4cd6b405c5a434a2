//! Reader-writer locks, on the real ones through their try functions.
//!
//! Whether one is free is found out by taking it for a moment: no logical thread ever waits inside the real lock, so nobody
//! is disturbed.

use core::ffi::c_int;

use waylay_runtime::posix::rwlock::{RwLock, Way, lock, try_lock, unlock};
use waylay_scheduler::Key;

use super::{EBUSY, ETIMEDOUT, Timespec, moment_of};
use crate::interpose::interpose_foreign;
use crate::runtime::outside::{self, Act};
use crate::runtime::{Logical, Token};

/// A lock of the program: a pointer of the library's, or what its initialiser says.
type Place = isize;

/// A lock, by its address.
#[derive(Clone, Copy)]
struct Lock(*mut Place);

impl Lock {
    /// # Safety
    /// The lock exists for as long as this value is used.
    unsafe fn at(lock: *mut Place) -> Lock {
        Lock(lock)
    }
}

impl RwLock for Lock {
    type Thread = Logical;
    const TIMED_OUT: c_int = ETIMEDOUT;

    fn key(self) -> Key {
        Key(self.0 as usize)
    }

    fn is_free(self, way: Way) -> bool {
        match self.attempt(way) {
            0 => self.give_back() == 0,
            // What is no lock says so to who takes it.
            result => result != EBUSY,
        }
    }

    fn attempt(self, way: Way) -> c_int {
        // SAFETY: the lock exists.
        unsafe {
            match way {
                Way::Read => real::pthread_rwlock_tryrdlock(self.0),
                Way::Write => real::pthread_rwlock_trywrlock(self.0),
            }
        }
    }

    fn give_back(self) -> c_int {
        // SAFETY: the lock exists.
        unsafe { real::pthread_rwlock_unlock(self.0) }
    }

    fn judge(self, _: &Token, result: c_int) -> Option<c_int> {
        (result != EBUSY).then_some(result)
    }
}

unsafe fn unlock_outside(lock: *mut Place) -> c_int {
    // SAFETY: by the caller's promise.
    let result = unsafe { real::pthread_rwlock_unlock(lock) };
    outside::did(Key(lock as usize), Act::Freed);
    result
}

interpose_foreign! {
    fn pthread_rwlock_rdlock(l: *mut Place) -> c_int = real::pthread_rwlock_rdlock(l), |me| {
        lock(me, Lock::at(l), Way::Read, None)
    }
    fn pthread_rwlock_wrlock(l: *mut Place) -> c_int = real::pthread_rwlock_wrlock(l), |me| {
        lock(me, Lock::at(l), Way::Write, None)
    }
    fn pthread_rwlock_tryrdlock(l: *mut Place) -> c_int = real::pthread_rwlock_tryrdlock(l), |me| {
        try_lock(me, Lock::at(l), Way::Read)
    }
    fn pthread_rwlock_trywrlock(l: *mut Place) -> c_int = real::pthread_rwlock_trywrlock(l), |me| {
        try_lock(me, Lock::at(l), Way::Write)
    }
    fn pthread_rwlock_timedrdlock(l: *mut Place, until: *const Timespec) -> c_int
        = real::pthread_rwlock_timedrdlock(l, until), |me| {
        let deadline = moment_of(me, &*until);
        lock(me, Lock::at(l), Way::Read, Some(deadline))
    }
    fn pthread_rwlock_timedwrlock(l: *mut Place, until: *const Timespec) -> c_int
        = real::pthread_rwlock_timedwrlock(l, until), |me| {
        let deadline = moment_of(me, &*until);
        lock(me, Lock::at(l), Way::Write, Some(deadline))
    }

    fn pthread_rwlock_unlock(l: *mut Place) -> c_int = unlock_outside(l), |me| {
        unlock(me, Lock::at(l))
    }
}
