//! Spin locks. Waiting is waiting, not spinning.

use core::ffi::c_int;
use core::sync::atomic::{AtomicIsize, Ordering};

use waylay_accesses::Way;
use waylay_schedule::EventKind;
use waylay_scheduler::{Key, Shares};

use super::EBUSY;
use crate::interpose::interpose_foreign;
use crate::runtime::outside::{self, Act};
use crate::runtime::{Token, acquire, event_at, freed, step, taken};
use crate::watch::edge;

type Lock = isize;

/// A lock that nobody holds has the value of its initialiser.
const FREE: Lock = -1;

unsafe fn is_free(lock: *const Lock) -> bool {
    // SAFETY: by the caller's promise that this is a lock.
    unsafe { (*lock.cast::<AtomicIsize>()).load(Ordering::Relaxed) == FREE }
}

fn note_taken(me: &mut Token, key: Key) {
    // SAFETY: who has the token lives.
    unsafe {
        let number = (*me.thread()).number;
        me.run().system.mutexes.locked(key.0, number);
        edge::locked(me, key, Way::Exclusive);
        taken(me, key, Shares::ALL);
    }
}

unsafe fn unlock_outside(lock: *mut Lock) -> c_int {
    // SAFETY: by the caller's promise.
    let result = unsafe { real::pthread_spin_unlock(lock) };
    outside::did(Key(lock as usize), Act::Freed);
    result
}

interpose_foreign! {
    fn pthread_spin_lock(lock: *mut Lock) -> c_int = real::pthread_spin_lock(lock), |me| {
        let key = Key(lock as usize);
        let event = event_at(EventKind::MutexLock, key);
        loop {
            let attempt = |_: &mut Token| Some(real::pthread_spin_trylock(lock)).filter(|&result| result != EBUSY);
            if let Ok(result) = acquire(me, event, key, Shares::ALL, None, |_| is_free(lock), attempt) {
                note_taken(me, key);
                return result;
            }
        }
    }
    fn pthread_spin_trylock(lock: *mut Lock) -> c_int = real::pthread_spin_trylock(lock), |me| {
        let key = Key(lock as usize);
        step(me, event_at(EventKind::MutexTryLock, key));
        let result = real::pthread_spin_trylock(lock);
        if result == 0 {
            note_taken(me, key);
        }
        result
    }
    fn pthread_spin_unlock(lock: *mut Lock) -> c_int = unlock_outside(lock), |me| {
        let key = Key(lock as usize);
        let result = real::pthread_spin_unlock(lock);
        edge::unlocked(me, key);
        me.run().system.mutexes.unlocked(key.0);
        freed(me, key, Shares::ALL);
        step(me, event_at(EventKind::MutexUnlock, key));
        result
    }
}
