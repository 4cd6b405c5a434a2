//! Mutexes and spin locks, on the real ones through their trylock. Waiting is waiting, not spinning.

use core::ffi::c_int;

use waylay_accesses::Way;
use waylay_schedule::EventKind;
use waylay_scheduler::{Acquire, Key, Moment, Shares};

use crate::edge;
use crate::platform::{Platform, Thread};
use crate::point::{Waited, acquire, event_at, step};
use crate::token::Token;

/// A lock of the program, which exists for as long as there is such a value of it.
pub trait Mutex: Copy {
    /// Who takes it.
    type Thread: Thread;
    /// The error of an attempt when others hold it.
    const BUSY: c_int;
    /// The error of a wait whose time is over.
    const TIMED_OUT: c_int;

    /// Its address.
    fn key(self) -> Key;

    /// Whether `me` might get it now, or an error at once.
    fn is_free(self, me: &mut Token<Self::Thread>) -> bool;

    /// Tries to take the real lock.
    fn attempt(self) -> c_int;

    /// What an attempt means to `me`, who locks; none if it has to wait.
    fn judge(self, _me: &mut Token<Self::Thread>, result: c_int) -> Option<c_int> {
        (result != Self::BUSY).then_some(result)
    }

    /// Whether who got this from an attempt has the lock.
    fn is_had(result: c_int) -> bool {
        result == 0
    }

    /// `me` has it, or once more.
    fn note_locked(self, _me: &mut Token<Self::Thread>) {}

    /// Gives the real lock back. Says what came of it, and whether the lock is free if that went well.
    fn give_back(self, me: &mut Token<Self::Thread>) -> (c_int, bool);

    /// Whether nobody holds the lock there, which a thread waits for.
    fn nobody_holds(key: Key) -> bool;

    /// Whether processes that are not under control may hold it.
    fn is_beyond(self) -> bool {
        false
    }
}

/// What a waiter of a condition variable does when it is woken.
pub fn relock<M: Mutex>(mutex: M) -> Acquire {
    let key = mutex.key();
    Acquire { event: event_at(EventKind::MutexLock, key), key, is_free: M::nobody_holds }
}

/// Tries for `me`; none when it has to wait.
fn attempt<M: Mutex>(me: &mut Token<M::Thread>, mutex: M) -> Option<c_int> {
    mutex.judge(me, mutex.attempt())
}

/// An attempt that was not in vain.
fn attempted<M: Mutex>(me: &mut Token<M::Thread>, mutex: M, result: c_int) -> c_int {
    me.run().sched.taken(mutex.key(), Shares::ALL);
    note_locked(me, mutex, result);
    result
}

/// `me` was told this when it wanted the lock.
pub fn note_locked<M: Mutex>(me: &mut Token<M::Thread>, mutex: M, result: c_int) {
    if M::is_had(result) {
        mutex.note_locked(me);
        edge::locked(me, mutex.key(), Way::Exclusive);
    }
}

/// Locks for `me`, waiting as long as it takes or until the deadline.
pub fn lock<M: Mutex>(me: &mut Token<M::Thread>, mutex: M, deadline: Option<Moment>) -> c_int {
    let key = mutex.key();
    let event = event_at(EventKind::MutexLock, key);
    loop {
        let attempt = |me: &mut Token<M::Thread>| attempt(me, mutex);
        let got = match mutex.is_beyond() {
            true => <M::Thread as Thread>::System::acquire_beyond(me, event, deadline, attempt),
            false => acquire(me, event, key, Shares::ALL, deadline, |me| mutex.is_free(me), attempt),
        };
        match got {
            Ok(result) => return attempted(me, mutex, result),
            Err(Waited::TimedOut) => return M::TIMED_OUT,
            // Locking a mutex is no cancellation point.
            Err(Waited::Interrupted | Waited::Done) => {}
        }
    }
}

/// Locks for `me`, if the lock is free.
pub fn try_lock<M: Mutex>(me: &mut Token<M::Thread>, mutex: M) -> c_int {
    step(me, event_at(EventKind::MutexTryLock, mutex.key()));
    let result = mutex.attempt();
    if result == M::BUSY { result } else { attempted(me, mutex, result) }
}

/// Takes the lock back after a wait on a condition variable that a wake-up ended.
pub fn take_back<M: Mutex>(me: &mut Token<M::Thread>, mutex: M) -> c_int {
    match attempt(me, mutex) {
        Some(result) => attempted(me, mutex, result),
        None => lock(me, mutex, None),
    }
}

/// Unlocks and makes waiters ready, without a step.
#[inline]
pub fn give_back<M: Mutex>(me: &mut Token<M::Thread>, mutex: M) -> c_int {
    let (result, is_free) = mutex.give_back(me);
    if result == 0 {
        edge::unlocked(me, mutex.key());
    }
    if result == 0 && is_free {
        me.run().sched.freed(mutex.key(), Shares::ALL);
    }
    result
}

/// Unlocks.
#[inline]
pub fn unlock<M: Mutex>(me: &mut Token<M::Thread>, mutex: M) -> c_int {
    let result = give_back(me, mutex);
    step(me, event_at(EventKind::MutexUnlock, mutex.key()));
    result
}
