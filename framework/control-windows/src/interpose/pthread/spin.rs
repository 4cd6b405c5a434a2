//! Spin locks. Waiting is waiting, not spinning.

use core::ffi::c_int;
use core::sync::atomic::{AtomicIsize, Ordering};

use waylay_runtime::posix::mutex::{self as posix, lock, try_lock, unlock};
use waylay_scheduler::Key;

use super::mutex::number_of;
use super::{EBUSY, ETIMEDOUT};
use crate::interpose::interpose_foreign;
use crate::runtime::outside::{self, Act};
use crate::runtime::{Logical, Token};

type Lock = isize;

/// A lock that nobody holds has the value of its initialiser.
const FREE: Lock = -1;

/// A lock of the program, by its address.
#[derive(Clone, Copy)]
struct Spun(*mut Lock);

impl Spun {
    /// # Safety
    /// The lock exists for as long as this value is used.
    unsafe fn at(lock: *mut Lock) -> Spun {
        Spun(lock)
    }
}

impl posix::Mutex for Spun {
    type Thread = Logical;
    const BUSY: c_int = EBUSY;
    const TIMED_OUT: c_int = ETIMEDOUT;

    fn key(self) -> Key {
        Key(self.0 as usize)
    }

    fn is_free(self, _: &mut Token) -> bool {
        Self::nobody_holds(posix::Mutex::key(self))
    }

    fn attempt(self) -> c_int {
        // SAFETY: the lock exists.
        unsafe { real::pthread_spin_trylock(self.0) }
    }

    fn note_locked(self, me: &mut Token) {
        let number = number_of(me);
        me.run().system.mutexes.locked(self.0 as usize, number);
    }

    fn give_back(self, me: &mut Token) -> (c_int, bool) {
        me.run().system.mutexes.unlocked(self.0 as usize);
        // SAFETY: the lock exists.
        (unsafe { real::pthread_spin_unlock(self.0) }, true)
    }

    fn nobody_holds(key: Key) -> bool {
        // SAFETY: the key was made from a lock, which exists.
        unsafe { (*(key.0 as *const AtomicIsize)).load(Ordering::Relaxed) == FREE }
    }
}

unsafe fn unlock_outside(lock: *mut Lock) -> c_int {
    // SAFETY: by the caller's promise.
    let result = unsafe { real::pthread_spin_unlock(lock) };
    outside::did(Key(lock as usize), Act::Freed);
    result
}

interpose_foreign! {
    fn pthread_spin_lock(l: *mut Lock) -> c_int = real::pthread_spin_lock(l), |me| { lock(me, Spun::at(l), None) }
    fn pthread_spin_trylock(l: *mut Lock) -> c_int = real::pthread_spin_trylock(l), |me| { try_lock(me, Spun::at(l)) }
    fn pthread_spin_unlock(l: *mut Lock) -> c_int = unlock_outside(l), |me| { unlock(me, Spun::at(l)) }
}
