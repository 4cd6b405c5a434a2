//! Mutexes, on the real ones through their trylock: recursion keeps its meaning.
//!
//! How the library keeps the owner is its own business, so that is noted here.

use core::ffi::c_int;
use std::collections::BTreeSet;
use std::sync::{Mutex as Lock, PoisonError};

use waylay_accesses::Way;
use waylay_schedule::EventKind;
use waylay_scheduler::{Acquire, ByAddress, Key, Moment, Shares};

use super::{EBUSY, EDEADLK, ETIMEDOUT, Timespec, moment_of};
use crate::interpose::{Foreign, interpose_foreign};
use crate::runtime::outside::{self, Act};
use crate::runtime::{Token, Waited, acquire, event_at, freed, runtime, step, taken};
use crate::watch::edge;

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

fn nobody_holds(key: Key) -> bool {
    // SAFETY: asked by the scheduler, on behalf of the token's holder.
    unsafe { (*runtime()).system.mutexes.held.get(&key.0).is_none_or(|held| held.times == 0) }
}

/// What a waiter of a condition variable does when it is woken.
pub(super) fn relock(mutex: *mut Mutex) -> Acquire {
    let key = Key(mutex as usize);
    Acquire { event: event_at(EventKind::MutexLock, key), key, is_free: nobody_holds }
}

/// Locks for `me`, waiting as long as it takes or until the deadline.
pub(super) unsafe fn lock(me: &mut Token, mutex: *mut Mutex, deadline: Option<Moment>) -> c_int {
    let key = Key(mutex as usize);
    let event = event_at(EventKind::MutexLock, key);
    // SAFETY: by the caller's promise.
    unsafe {
        loop {
            let number = (*me.thread()).number;
            let free = |me: &mut Token| !me.run().system.mutexes.is_held_by_another(key.0, number);
            match acquire(me, event, key, Shares::ALL, deadline, free, |me| attempt(me, mutex)) {
                Ok(result) => {
                    taken(me, key, Shares::ALL);
                    return result;
                }
                Err(Waited::TimedOut) => return ETIMEDOUT,
                Err(Waited::Interrupted | Waited::Done) => {}
            }
        }
    }
}

/// Tries for `me`; nothing when it has to wait.
unsafe fn attempt(me: &mut Token, mutex: *mut Mutex) -> Option<c_int> {
    let place = mutex as usize;
    // SAFETY: by the caller's promise; a mutex that was never used has its initialiser's value.
    unsafe {
        if mutex.read_volatile() == CHECKING {
            with_checked(|checked| checked.insert(place));
        }
        let number = (*me.thread()).number;
        let result = real::pthread_mutex_trylock(mutex);
        if result == 0 {
            me.run().system.mutexes.locked(place, number);
            edge::locked(me, Key(place), Way::Exclusive);
        }
        if result != EBUSY {
            return Some(result);
        }
        let mine = me.run().system.mutexes.is_held_by(place, number);
        (mine && with_checked(|checked| checked.contains(&place))).then_some(EDEADLK)
    }
}

/// Takes the mutex back after a wait on a condition variable that a wake-up ended.
pub(super) unsafe fn take_back(me: &mut Token, mutex: *mut Mutex) -> c_int {
    // SAFETY: by the caller's promise.
    unsafe {
        match attempt(me, mutex) {
            Some(result) => {
                taken(me, Key(mutex as usize), Shares::ALL);
                result
            }
            None => lock(me, mutex, None),
        }
    }
}

/// Unlocks and makes waiters ready, without a step.
pub(super) unsafe fn unlock(me: &mut Token, mutex: *mut Mutex) -> c_int {
    // SAFETY: by the caller's promise.
    unsafe {
        let result = real::pthread_mutex_unlock(mutex);
        if result == 0 {
            edge::unlocked(me, Key(mutex as usize));
        }
        if result == 0 && me.run().system.mutexes.unlocked(mutex as usize) {
            freed(me, Key(mutex as usize), Shares::ALL);
        }
        result
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
        lock(me, mutex, None)
    }
    fn pthread_mutex_timedlock(mutex: *mut Mutex, until: *const Timespec) -> c_int
        = real::pthread_mutex_timedlock(mutex, until), |me| {
        let deadline = moment_of(me, until);
        lock(me, mutex, Some(deadline))
    }

    fn pthread_mutex_trylock(mutex: *mut Mutex) -> c_int = real::pthread_mutex_trylock(mutex), |me| {
        let key = Key(mutex as usize);
        step(me, event_at(EventKind::MutexTryLock, key));
        let result = real::pthread_mutex_trylock(mutex);
        if result == 0 {
            let number = (*me.thread()).number;
            me.run().system.mutexes.locked(key.0, number);
            edge::locked(me, key, Way::Exclusive);
            taken(me, key, Shares::ALL);
        }
        result
    }
    fn pthread_mutex_unlock(mutex: *mut Mutex) -> c_int = unlock_outside(mutex), |me| {
        let result = unlock(me, mutex);
        step(me, event_at(EventKind::MutexUnlock, Key(mutex as usize)));
        result
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
