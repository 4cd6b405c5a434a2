//! Semaphores, on the real ones through `sem_trywait`.

use core::ffi::c_int;

use waylay_schedule::EventKind;
use waylay_scheduler::{Key, Moment, Shares};

use crate::edge;
use crate::platform::{Platform, Thread};
use crate::point::{Waited, acquire, event_at, step};
use crate::token::Token;

/// A semaphore of the program, which exists for as long as there is such a value of it.
pub trait Semaphore: Copy {
    /// Who waits.
    type Thread: Thread;
    /// The error of a wait whose time is over, and that of one which was interrupted.
    const TIMED_OUT: c_int;
    /// See [`Semaphore::TIMED_OUT`].
    const INTERRUPTED: c_int;

    /// Its address.
    fn key(self) -> Key;

    /// Whether it can be had.
    fn is_free(self) -> bool;

    /// Tries to take one of the real semaphore.
    fn attempt(self) -> c_int;

    /// Sets the program's error number, and returns what says that there is one.
    fn fail(error: c_int) -> c_int;

    /// `me` begins to wait. The error that it gets at once, if it gets one.
    fn begin(self, _me: &mut Token<Self::Thread>) -> Option<c_int> {
        None
    }

    /// Whether a wait of `me` that was interrupted has to fail; those without a deadline may go on.
    fn fails(self, _me: &mut Token<Self::Thread>, _for_ever: bool) -> bool {
        false
    }

    /// Whether processes that are not under control may post it.
    fn is_beyond(self) -> bool {
        false
    }
}

fn note_taken<S: Semaphore>(me: &mut Token<S::Thread>, semaphore: S) {
    edge::takes(me, semaphore.key());
    if !semaphore.is_free() {
        me.run().sched.taken(semaphore.key(), Shares::ALL);
    }
}

/// Waits as long as it takes or until the deadline.
pub fn wait_for<S: Semaphore>(me: &mut Token<S::Thread>, semaphore: S, deadline: Option<Moment>) -> c_int {
    let key = semaphore.key();
    let event = event_at(EventKind::SemWait, key);
    if let Some(error) = semaphore.begin(me) {
        return S::fail(error);
    }
    loop {
        let attempt =
            |_: &mut Token<S::Thread>| (semaphore.is_free() && semaphore.attempt() == 0).then_some(());
        let got = match semaphore.is_beyond() {
            true => <S::Thread as Thread>::System::acquire_beyond(me, event, deadline, attempt),
            false => acquire(me, event, key, Shares::ALL, deadline, |_| semaphore.is_free(), attempt),
        };
        match got {
            Ok(()) => {
                note_taken(me, semaphore);
                return 0;
            }
            Err(Waited::TimedOut) => return S::fail(S::TIMED_OUT),
            Err(Waited::Interrupted | Waited::Done) => {
                if semaphore.fails(me, deadline.is_none()) {
                    return S::fail(S::INTERRUPTED);
                }
            }
        }
    }
}

/// Takes one, if there is one.
pub fn try_wait<S: Semaphore>(me: &mut Token<S::Thread>, semaphore: S) -> c_int {
    step(me, event_at(EventKind::SemTryWait, semaphore.key()));
    let result = semaphore.attempt();
    if result == 0 {
        note_taken(me, semaphore);
    }
    result
}

/// Adds to a semaphore, with `post`, and tells who waits.
pub fn add<S: Semaphore>(me: &mut Token<S::Thread>, semaphore: S, post: impl FnOnce() -> c_int) -> c_int {
    let key = semaphore.key();
    let result = post();
    edge::gives(me, key);
    me.run().sched.freed(key, Shares::ALL);
    step(me, event_at(EventKind::SemPost, key));
    result
}
