//! Reader-writer locks, on the real lock through its try functions.

use core::ffi::c_int;

use waylay_accesses::Way as Held;
use waylay_schedule::EventKind;
use waylay_scheduler::{Key, Moment, Shares};

use crate::edge;
use crate::platform::{Platform, Thread};
use crate::point::{Waited, acquire, event_at, step};
use crate::token::Token;

const READ: Shares = Shares(1);
const WRITE: Shares = Shares(2);

/// What a lock is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// With others who read.
    Read,
    /// Alone.
    Write,
}

/// A lock of the program, which exists for as long as there is such a value of it.
pub trait RwLock: Copy {
    /// Who takes it.
    type Thread: Thread;
    /// The error of a wait whose time is over.
    const TIMED_OUT: c_int;

    /// Its address.
    fn key(self) -> Key;

    /// Whether it could be had.
    fn is_free(self, way: Way) -> bool;

    /// Tries to take the real lock.
    fn attempt(self, way: Way) -> c_int;

    /// Gives the real lock back.
    fn give_back(self) -> c_int;

    /// Whether a failed attempt only says that others hold it, so that `me` has to wait.
    fn judge(self, me: &Token<Self::Thread>, result: c_int) -> Option<c_int>;

    /// Whether `me` is told at once that it can never have it.
    fn refuses(self, _me: &Token<Self::Thread>) -> bool {
        false
    }

    /// Whether processes that are not under control may hold it.
    fn is_beyond(self) -> bool {
        false
    }
}

fn note_taken<L: RwLock>(me: &mut Token<L::Thread>, lock: L, way: Way) {
    let (shares, held) = match way {
        Way::Read => (WRITE, Held::Shared),
        Way::Write => (Shares::ALL, Held::Exclusive),
    };
    edge::locked(me, lock.key(), held);
    me.run().sched.taken(lock.key(), shares);
}

/// Takes a lock, waiting as long as it takes or until the deadline.
pub fn lock<L: RwLock>(me: &mut Token<L::Thread>, lock: L, way: Way, deadline: Option<Moment>) -> c_int {
    let key = lock.key();
    let (kind, shares) = match way {
        Way::Read => (EventKind::RwReadLock, READ),
        Way::Write => (EventKind::RwWriteLock, WRITE),
    };
    let event = event_at(kind, key);
    loop {
        let attempt = |me: &mut Token<L::Thread>| lock.judge(me, lock.attempt(way));
        let free = |me: &mut Token<L::Thread>| lock.is_free(way) || lock.refuses(me);
        let got = match lock.is_beyond() {
            true => <L::Thread as Thread>::System::acquire_beyond(me, event, deadline, attempt),
            false => acquire(me, event, key, shares, deadline, free, attempt),
        };
        match got {
            Ok(result) => {
                if result == 0 {
                    note_taken(me, lock, way);
                }
                return result;
            }
            Err(Waited::TimedOut) => return L::TIMED_OUT,
            Err(Waited::Interrupted | Waited::Done) => {}
        }
    }
}

/// Takes a lock, if it is free.
pub fn try_lock<L: RwLock>(me: &mut Token<L::Thread>, lock: L, way: Way) -> c_int {
    let kind = if way == Way::Read { EventKind::RwTryReadLock } else { EventKind::RwTryWriteLock };
    step(me, event_at(kind, lock.key()));
    let result = lock.attempt(way);
    if result == 0 {
        note_taken(me, lock, way);
    }
    result
}

/// Gives a lock back.
pub fn unlock<L: RwLock>(me: &mut Token<L::Thread>, lock: L) -> c_int {
    let key = lock.key();
    // Readers let others read; a writer does not.
    let written = !lock.is_free(Way::Read);
    let result = lock.give_back();
    if result == 0 {
        edge::unlocked(me, key);
    }
    if result == 0 && lock.is_free(Way::Write) {
        me.run().sched.freed(key, Shares::ALL);
    }
    step(me, event_at(if written { EventKind::RwWriteUnlock } else { EventKind::RwReadUnlock }, key));
    result
}
