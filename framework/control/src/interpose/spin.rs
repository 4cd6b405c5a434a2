//! Spin locks: `pthread_spin_*`. Waiting is waiting, not spinning.

use core::sync::atomic::{AtomicI32, Ordering};

use libc::{EBUSY, ETIMEDOUT, pthread_spinlock_t};
use waylay_runtime::posix::mutex::{self as posix, lock, try_lock, unlock};

use super::interpose;
use crate::runtime::outside::{self, Act};
use crate::runtime::{Logical, Token};
use crate::sched::Key;

/// A lock, by its address.
#[derive(Clone, Copy)]
struct Lock(*mut pthread_spinlock_t);

impl Lock {
    /// # Safety
    /// The lock exists for as long as this value is used.
    unsafe fn at(lock: *mut pthread_spinlock_t) -> Lock {
        Lock(lock)
    }
}

impl posix::Mutex for Lock {
    type Thread = Logical;
    const BUSY: i32 = EBUSY;
    const TIMED_OUT: i32 = ETIMEDOUT;

    fn key(self) -> Key {
        Key(self.0 as usize)
    }

    fn is_free(self, _: &mut Token) -> bool {
        Self::nobody_holds(posix::Mutex::key(self))
    }

    fn attempt(self) -> i32 {
        // SAFETY: the lock exists.
        unsafe { real::pthread_spin_trylock(self.0) }
    }

    fn give_back(self, _: &mut Token) -> (i32, bool) {
        // SAFETY: the lock exists.
        (unsafe { real::pthread_spin_unlock(self.0) }, true)
    }

    /// glibc on x86-64: 1 is unlocked.
    fn nobody_holds(key: Key) -> bool {
        // SAFETY: the key was made from a lock, which exists.
        unsafe { (*(key.0 as *const AtomicI32)).load(Ordering::Relaxed) == 1 }
    }

    /// It does not say whether it was made for several processes.
    fn is_beyond(self) -> bool {
        outside::may_share()
    }
}

interpose! {
    fn pthread_spin_lock(l: *mut pthread_spinlock_t) -> i32, |me| { lock(me, Lock::at(l), None) }
    fn pthread_spin_trylock(l: *mut pthread_spinlock_t) -> i32, |me| { try_lock(me, Lock::at(l)) }
    fn pthread_spin_unlock(l: *mut pthread_spinlock_t) -> i32, outside outside::did(Key(l as usize), Act::Freed), |me| {
        unlock(me, Lock::at(l))
    }
}
