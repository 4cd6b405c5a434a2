//! Mutexes, on the real ones through their trylock: recursion keeps its meaning.
//!
//! How the library keeps the owner is its own business, so that is noted here.

use core::ffi::c_int;
use std::collections::BTreeSet;
use std::sync::{Mutex as Lock, PoisonError};

use waylay_runtime::posix::mutex::{self as posix, lock, try_lock, unlock};
use waylay_scheduler::{ByAddress, Key};

use super::{EBUSY, EDEADLK, ETIMEDOUT, Timespec, moment_of};
use crate::interpose::{Foreign, interpose_foreign};
use crate::runtime::outside::{self, Act};
use crate::runtime::{Logical, Token, runtime};

/// A mutex of the program: a pointer of the library's, or what its initialiser says.
pub(super) type Mutex = isize;

/// The initialiser of a mutex that checks for errors, and the same as an attribute.
const CHECKING: Mutex = -2;
const TYPE_CHECKING: c_int = 1;

/// Mutexes that check for errors: one that is locked by its owner says so, another waits for ever.
static CHECKED: Lock<BTreeSet<usize>> = Lock::new(BTreeSet::new());

fn with_checked<R>(what: impl FnOnce(&mut BTreeSet<usize>) -> R) -> R {
    what(&mut CHECKED.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The mutexes of a run.
#[derive(Debug, Default)]
pub(crate) struct Mutexes {
    held: ByAddress<usize, Held>,
}

/// By which thread (the system's number) and how often; 0 times: it is free.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    by: u32,
    times: u32,
}

impl Mutexes {
    /// Forgets everything, between two runs.
    pub(crate) fn forget(&mut self) {
        self.held.clear();
    }

    /// Who holds the mutex there, if it is one: perhaps nobody whom we know.
    pub(crate) fn owner(&self, mutex: usize) -> Option<Option<u32>> {
        self.held.get(&mutex).map(|held| (held.times > 0).then_some(held.by))
    }

    fn is_held_by_another(&self, mutex: usize, than: u32) -> bool {
        self.held.get(&mutex).is_some_and(|held| held.times > 0 && held.by != than)
    }

    fn is_held_by(&self, mutex: usize, by: u32) -> bool {
        self.held.get(&mutex).is_some_and(|held| held.times > 0 && held.by == by)
    }

    /// It was locked, or once more.
    pub(super) fn locked(&mut self, mutex: usize, by: u32) {
        let held = self.held.entry(mutex).or_default();
        (held.by, held.times) = (by, held.times + 1);
    }

    /// It was unlocked; whether it is free now.
    pub(super) fn unlocked(&mut self, mutex: usize) -> bool {
        let Some(held) = self.held.get_mut(&mutex) else { return true };
        held.times = held.times.saturating_sub(1);
        held.times == 0
    }
}

/// A mutex of the program, by its address.
#[derive(Clone, Copy)]
pub(super) struct Locked(*mut Mutex);

impl Locked {
    /// # Safety
    /// The mutex exists for as long as this value is used.
    pub(super) unsafe fn at(mutex: *mut Mutex) -> Locked {
        Locked(mutex)
    }
}

/// The system's number of the running thread.
pub(super) fn number_of(me: &Token) -> u32 {
    // SAFETY: who has the token lives.
    unsafe { (*me.thread()).number }
}

impl posix::Mutex for Locked {
    type Thread = Logical;
    const BUSY: c_int = EBUSY;
    const TIMED_OUT: c_int = ETIMEDOUT;

    fn key(self) -> Key {
        Key(self.0 as usize)
    }

    fn is_free(self, me: &mut Token) -> bool {
        let number = number_of(me);
        !me.run().system.mutexes.is_held_by_another(self.0 as usize, number)
    }

    fn attempt(self) -> c_int {
        // SAFETY: the mutex exists; one that was never used has its initialiser's value.
        unsafe {
            if self.0.read_volatile() == CHECKING {
                with_checked(|checked| checked.insert(self.0 as usize));
            }
            real::pthread_mutex_trylock(self.0)
        }
    }

    fn judge(self, me: &mut Token, result: c_int) -> Option<c_int> {
        if result != EBUSY {
            return Some(result);
        }
        let (place, number) = (self.0 as usize, number_of(me));
        let mine = me.run().system.mutexes.is_held_by(place, number);
        (mine && with_checked(|checked| checked.contains(&place))).then_some(EDEADLK)
    }

    fn note_locked(self, me: &mut Token) {
        let number = number_of(me);
        me.run().system.mutexes.locked(self.0 as usize, number);
    }

    fn give_back(self, me: &mut Token) -> (c_int, bool) {
        // SAFETY: the mutex exists.
        let result = unsafe { real::pthread_mutex_unlock(self.0) };
        (result, result == 0 && me.run().system.mutexes.unlocked(self.0 as usize))
    }

    fn nobody_holds(key: Key) -> bool {
        // SAFETY: asked by the scheduler, on behalf of the token's holder.
        unsafe { (*runtime()).system.mutexes.held.get(&key.0).is_none_or(|held| held.times == 0) }
    }
}

unsafe fn unlock_outside(mutex: *mut Mutex) -> c_int {
    // SAFETY: by the caller's promise.
    let result = unsafe { real::pthread_mutex_unlock(mutex) };
    outside::did(Key(mutex as usize), Act::Freed);
    result
}

unsafe fn make(mutex: *mut Mutex, attributes: *const u32) -> c_int {
    static TYPE: Foreign = Foreign::new("pthread_mutexattr_gettype\0");
    // SAFETY: by the caller's promise; the function of this name has this type.
    unsafe {
        let mut kind = 0;
        if !attributes.is_null() {
            let ask: unsafe extern "C" fn(*const u32, *mut c_int) -> c_int =
                core::mem::transmute(TYPE.address());
            ask(attributes, &mut kind);
        }
        with_checked(|checked| match kind {
            TYPE_CHECKING => checked.insert(mutex as usize),
            _ => checked.remove(&(mutex as usize)),
        });
        real::pthread_mutex_init(mutex, attributes)
    }
}

unsafe fn destroy(mutex: *mut Mutex) -> c_int {
    with_checked(|checked| checked.remove(&(mutex as usize)));
    // SAFETY: by the caller's promise.
    unsafe { real::pthread_mutex_destroy(mutex) }
}

interpose_foreign! {
    fn pthread_mutex_init(mutex: *mut Mutex, attributes: *const u32) -> c_int = make(mutex, attributes), |_| {
        make(mutex, attributes)
    }
    fn pthread_mutex_destroy(mutex: *mut Mutex) -> c_int = destroy(mutex), |me| {
        me.run().system.mutexes.held.remove(&(mutex as usize));
        destroy(mutex)
    }
    fn pthread_mutex_lock(mutex: *mut Mutex) -> c_int = real::pthread_mutex_lock(mutex), |me| {
        lock(me, Locked::at(mutex), None)
    }
    fn pthread_mutex_timedlock(mutex: *mut Mutex, until: *const Timespec) -> c_int
        = real::pthread_mutex_timedlock(mutex, until), |me| {
        let deadline = moment_of(me, &*until);
        lock(me, Locked::at(mutex), Some(deadline))
    }
    fn pthread_mutex_trylock(mutex: *mut Mutex) -> c_int = real::pthread_mutex_trylock(mutex), |me| {
        try_lock(me, Locked::at(mutex))
    }
    fn pthread_mutex_unlock(mutex: *mut Mutex) -> c_int = unlock_outside(mutex), |me| {
        unlock(me, Locked::at(mutex))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mutex_is_free_when_it_was_unlocked_as_often_as_it_was_locked() {
        let mut mutexes = Mutexes::default();
        assert_eq!(mutexes.owner(64), None);
        mutexes.locked(64, 7);
        mutexes.locked(64, 7);
        assert!(mutexes.is_held_by(64, 7) && mutexes.is_held_by_another(64, 8));
        assert!(!mutexes.unlocked(64));
        assert_eq!(mutexes.owner(64), Some(Some(7)));
        assert!(mutexes.unlocked(64));
        assert_eq!(mutexes.owner(64), Some(None));
        assert!(!mutexes.is_held_by_another(64, 8));
    }
}
