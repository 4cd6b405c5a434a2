//! Spin locks: `pthread_spin_*`. Waiting is waiting, not spinning.

use core::sync::atomic::{AtomicI32, Ordering};

use libc::{EBUSY, pthread_spinlock_t};
use waylay_schedule::EventKind;

use super::interpose;
use crate::instrument::{Way, edge};
use crate::runtime::outside::{self, Act};
use crate::runtime::{Token, acquire, acquire_from_outside, event_at, freed, step, taken};
use crate::sched::{Key, Shares};

/// glibc on x86-64: 1 is unlocked.
unsafe fn is_free(lock: *const pthread_spinlock_t) -> bool {
    // SAFETY: by the caller's promise that this is a lock.
    unsafe { (*lock.cast::<AtomicI32>()).load(Ordering::Relaxed) == 1 }
}

interpose! {
    fn pthread_spin_lock(lock: *mut pthread_spinlock_t) -> i32, |me| {
        let key = Key(lock as usize);
        let event = event_at(EventKind::MutexLock, key);
        // It does not say whether it was made for several processes.
        loop {
            let attempt = |_: &mut Token| match real::pthread_spin_trylock(lock) {
                EBUSY => None,
                result => Some(result),
            };
            let got = match outside::has_started_processes() {
                true => acquire_from_outside(me, event, None, attempt),
                false => acquire(me, event, key, Shares::ALL, None, |_| is_free(lock), attempt),
            };
            if let Ok(result) = got {
                taken(me, key, Shares::ALL);
                edge::locked(me, key, Way::Exclusive);
                return result;
            }
        }
    }

    fn pthread_spin_trylock(lock: *mut pthread_spinlock_t) -> i32, |me| {
        let key = Key(lock as usize);
        step(me, event_at(EventKind::MutexTryLock, key));
        let result = real::pthread_spin_trylock(lock);
        if result == 0 {
            taken(me, key, Shares::ALL);
            edge::locked(me, key, Way::Exclusive);
        }
        result
    }

    fn pthread_spin_unlock(lock: *mut pthread_spinlock_t) -> i32, outside outside::did(Key(lock as usize), Act::Freed), |me| {
        let key = Key(lock as usize);
        let result = real::pthread_spin_unlock(lock);
        edge::unlocked(me, key);
        freed(me, key, Shares::ALL);
        step(me, event_at(EventKind::MutexUnlock, key));
        result
    }
}
