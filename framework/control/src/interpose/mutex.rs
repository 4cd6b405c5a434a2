//! Mutexes: `pthread_mutex_*`.
//!
//! The real mutex is used throughout, through its trylock: recursion, error checking, robustness and priority
//! inheritance keep libc's meaning, and the owner is right in the debugger.

use core::sync::atomic::{AtomicU32, Ordering};

use libc::{EBUSY, EDEADLK, EINVAL, ENOTRECOVERABLE, ETIMEDOUT, clockid_t, pthread_mutex_t, timespec};
use waylay_runtime::posix::mutex::{self as posix, lock, try_lock, unlock};

use super::clock::{has_deadlines, has_nanoseconds, moment_of};
use super::interpose;
use crate::runtime::outside::{self, Act};
use crate::runtime::{Logical, Token};
use crate::sched::{Key, Moment};

/// Offsets in glibc's `pthread_mutex_t` on x86-64; part of its ABI because initialisers are static.
const LOCK: usize = 0;
const COUNT: usize = 4;
const OWNER: usize = 8;
const KIND: usize = 16;
const RECURSIVE: u32 = 1;
const ERROR_CHECK: u32 = 2;
/// The part of the lock word of a robust mutex that names its owner.
const OWNER_BITS: u32 = 0x3fff_ffff;
/// Bit of the kind that says that it was made for several processes.
const SHARED: u32 = 128;
/// Bit of the lock word by which the kernel says that the owner of a robust mutex died.
const OWNER_DIED: u32 = 1 << 30;
/// Bits of the kind of a robust mutex that inherits priorities.
const ROBUST_AND_INHERITS: u32 = 16 | INHERITS;
const INHERITS: u32 = 32;
/// Bit of the kind of a mutex with a priority ceiling, and where its lock word has the ceiling, whoever holds it.
const PROTECTS: u32 = 64;
const CEILING: u32 = 0xfff8_0000;

/// A mutex, by its address.
#[derive(Clone, Copy)]
pub(crate) struct Mutex(*mut pthread_mutex_t);

impl Mutex {
    /// # Safety
    /// The mutex exists for as long as this value is used.
    pub(crate) unsafe fn at(mutex: *mut pthread_mutex_t) -> Mutex {
        Mutex(mutex)
    }

    fn word(self, offset: usize) -> &'static AtomicU32 {
        // SAFETY: inside the mutex, which exists; other kernel threads may write it.
        unsafe { &*self.0.byte_add(offset).cast::<AtomicU32>() }
    }

    fn read(self, offset: usize) -> u32 {
        self.word(offset).load(Ordering::Relaxed)
    }

    /// What says who holds it; 0 when it is free.
    fn lock_word(self) -> u32 {
        self.read(LOCK) & if self.read(KIND) & PROTECTS != 0 { !CEILING } else { !0 }
    }

    /// The kernel's number of the thread that holds it; 0 when it is free.
    pub(crate) fn owner(self) -> u32 {
        if self.lock_word() == 0 { 0 } else { self.read(OWNER) }
    }
}

fn number_of(me: &Token) -> u32 {
    // SAFETY: who has the token lives.
    unsafe { (*me.thread()).kernel_id as u32 }
}

impl posix::Mutex for Mutex {
    type Thread = Logical;
    const BUSY: i32 = EBUSY;
    const TIMED_OUT: i32 = ETIMEDOUT;

    fn key(self) -> Key {
        Key(self.0 as usize)
    }

    /// The owner of a recursive one can have it, and of an error-checking one gets its error at once.
    #[inline]
    fn is_free(self, me: &mut Token) -> bool {
        let lock = self.lock_word();
        lock == 0 || lock & OWNER_DIED != 0 || self.read(OWNER) == number_of(me)
    }

    #[inline]
    fn attempt(self) -> i32 {
        let (lock, kind) = (self.read(LOCK), self.read(KIND));
        let of_the_dead = lock & OWNER_DIED != 0 && kind & ROBUST_AND_INHERITS == ROBUST_AND_INHERITS;
        if of_the_dead && !outside::may_share() {
            // libc would have the kernel hand it over, which would name the kernel thread that asks: the carrier. As one that
            // inherits nothing it is taken by its word alone. Nobody else looks meanwhile: the caller has the token.
            self.word(KIND).store(kind & !INHERITS, Ordering::Relaxed);
            // SAFETY: the mutex exists.
            let result = unsafe { real::pthread_mutex_trylock(self.0) };
            self.word(KIND).store(kind, Ordering::Relaxed);
            return result;
        }
        // SAFETY: the mutex exists.
        unsafe { real::pthread_mutex_trylock(self.0) }
    }

    #[inline]
    fn judge(self, me: &mut Token, result: i32) -> Option<i32> {
        if result == ENOTRECOVERABLE && self.read(LOCK) & OWNER_BITS == number_of(me) {
            // libc's trylock keeps what cannot be recovered; its lock, for which this stands, does not.
            self.word(LOCK).store(0, Ordering::Release);
        }
        if result != EBUSY {
            return Some(result);
        }
        let mine = self.read(OWNER) == number_of(me);
        (mine && self.read(KIND) & 3 == ERROR_CHECK).then_some(EDEADLK)
    }

    /// Whoever gets a mutex of a thread that died has it too.
    #[inline]
    fn is_had(result: i32) -> bool {
        result == 0 || result == libc::EOWNERDEAD
    }

    #[inline]
    fn give_back(self, _: &mut Token) -> (i32, bool) {
        // Known before: to read the lock word right after an atomic operation on it would wait for that.
        let last = self.read(KIND) & 3 != RECURSIVE || self.read(COUNT) == 1;
        // SAFETY: the mutex exists.
        (unsafe { real::pthread_mutex_unlock(self.0) }, last)
    }

    fn nobody_holds(key: Key) -> bool {
        // The key was made from a mutex on which a thread waits, so it exists.
        let lock = Mutex(key.0 as *mut pthread_mutex_t).lock_word();
        lock == 0 || lock & OWNER_DIED != 0
    }

    #[inline]
    fn is_beyond(self) -> bool {
        self.read(KIND) & SHARED != 0 && outside::may_share()
    }
}

/// libc looks at the time only where it has to wait.
unsafe fn lock_until(
    me: &mut Token,
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    until: *const timespec,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        let valid = has_nanoseconds(&*until);
        let deadline = if valid { moment_of(me, clock, &*until) } else { Moment(0) };
        match lock(me, Mutex::at(mutex), Some(deadline)) {
            ETIMEDOUT if !valid => EINVAL,
            result => result,
        }
    }
}

interpose! {
    fn pthread_mutex_lock(mutex: *mut pthread_mutex_t) -> i32, |me| { lock(me, Mutex::at(mutex), None) }
    fn pthread_mutex_trylock(mutex: *mut pthread_mutex_t) -> i32, |me| { try_lock(me, Mutex::at(mutex)) }

    fn pthread_mutex_timedlock(mutex: *mut pthread_mutex_t, until: *const timespec) -> i32, |me| {
        lock_until(me, mutex, libc::CLOCK_REALTIME, until)
    }

    fn pthread_mutex_clocklock(mutex: *mut pthread_mutex_t, clock: clockid_t, until: *const timespec) -> i32, |me| {
        if !has_deadlines(clock) {
            return EINVAL;
        }
        lock_until(me, mutex, clock, until)
    }

    fn pthread_mutex_unlock(mutex: *mut pthread_mutex_t) -> i32, outside outside::did(Key(mutex as usize), Act::Freed), |me| {
        unlock(me, Mutex::at(mutex))
    }
}
