//! The POSIX threads of mingw, which C and its C++ library use there: their locks never leave user space when nobody holds
//! them, so that only the calls themselves can be steps.
//!
//! The real locks are used through their try functions. The real condition variable is never waited on by logical
//! threads.

use core::ffi::{c_int, c_void};

use waylay_control_protocol::ClockSource;
use waylay_schedule::{Event, EventKind, ObjectId};
use waylay_scheduler::{Acquire, Key, Moment, Shares};
use windows_sys::Win32::System::SystemInformation::GetSystemTimeAsFileTime;

use super::interpose_foreign;
use crate::runtime::outside::{self, Act};
use crate::runtime::{Logical, Waited, acquire, event_at, freed, runtime, step, taken, wait, wake};

/// Error numbers of the C runtimes of Windows.
const EAGAIN: c_int = 11;
const EBUSY: c_int = 16;
const ETIMEDOUT: c_int = 138;

/// Where virtual wall-clock time begins, in nanoseconds since 1970.
const WALL: u64 = 1_704_067_200 * SECOND;
const SECOND: u64 = 1_000_000_000;

/// A mutex, condition variable, read-write lock, spin lock or semaphore: one word, which only the library understands.
type Object = *mut c_void;

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i32,
}

/// The moment at which the wall clock will show this.
unsafe fn moment_of(until: *const Timespec) -> Moment {
    // SAFETY: by the caller's promise; called with the token.
    unsafe {
        let until =
            ((*until).seconds.max(0) as u64).saturating_mul(SECOND) + (*until).nanoseconds.max(0) as u64;
        if (*runtime()).settings.clock == ClockSource::Virtual as u32 {
            return Moment(until.saturating_sub(WALL));
        }
        /// 100 ns between 1601 and 1970.
        const EPOCH: u64 = 116_444_736_000_000_000;
        let mut now = windows_sys::Win32::Foundation::FILETIME::default();
        GetSystemTimeAsFileTime(&mut now);
        let now =
            (u64::from(now.dwHighDateTime) << 32 | u64::from(now.dwLowDateTime)).saturating_sub(EPOCH) * 100;
        (*runtime()).sched.clock.after(until.saturating_sub(now))
    }
}

/// How something is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Mutex,
    Spin,
    Read,
    Write,
}

const READ: Shares = Shares(1);
const WRITE: Shares = Shares(2);

impl Way {
    unsafe fn attempt(self, object: Object) -> c_int {
        // SAFETY: by the caller's promise that this is such an object.
        unsafe {
            match self {
                Way::Mutex => real::pthread_mutex_trylock(object),
                Way::Spin => real::pthread_spin_trylock(object),
                Way::Read => real::pthread_rwlock_tryrdlock(object),
                Way::Write => real::pthread_rwlock_trywrlock(object),
            }
        }
    }

    unsafe fn release(self, object: Object) -> c_int {
        // SAFETY: by the caller's promise that it is held.
        unsafe {
            match self {
                Way::Mutex => real::pthread_mutex_unlock(object),
                Way::Spin => real::pthread_spin_unlock(object),
                Way::Read | Way::Write => real::pthread_rwlock_unlock(object),
            }
        }
    }

    /// Whether it could be had: by taking it for a moment. No logical thread waits inside the real object.
    unsafe fn is_free(self, object: Object) -> bool {
        // SAFETY: by the caller's promise.
        unsafe {
            match self.attempt(object) {
                0 => {
                    self.release(object);
                    true
                }
                error => error != EBUSY,
            }
        }
    }

    fn events(self) -> (EventKind, EventKind) {
        match self {
            Way::Mutex | Way::Spin => (EventKind::MutexLock, EventKind::MutexTryLock),
            Way::Read => (EventKind::RwReadLock, EventKind::RwTryReadLock),
            Way::Write => (EventKind::RwWriteLock, EventKind::RwTryWriteLock),
        }
    }

    fn wanted(self) -> Shares {
        match self {
            Way::Mutex | Way::Spin => Shares::ALL,
            Way::Read => READ,
            Way::Write => WRITE,
        }
    }

    unsafe fn note_taken(self, me: *mut Logical, object: Object) {
        let key = Key(object as usize);
        // SAFETY: called by the running thread.
        unsafe {
            taken(key, if self == Way::Read { WRITE } else { Shares::ALL });
            if self == Way::Mutex {
                (*runtime()).handles.note_owner(key, Some((*me).number));
            }
        }
    }
}

unsafe fn lock(me: *mut Logical, object: Object, way: Way, deadline: Option<Moment>) -> c_int {
    let key = Key(object as usize);
    // SAFETY: by the caller's promise.
    unsafe {
        let free = || way.is_free(object);
        let attempt = || Some(way.attempt(object)).filter(|&error| error != EBUSY);
        loop {
            match acquire(me, event_at(way.events().0, key), key, way.wanted(), deadline, free, attempt) {
                Ok(error) => {
                    if error == 0 {
                        way.note_taken(me, object);
                    }
                    return error;
                }
                Err(Waited::TimedOut) => return ETIMEDOUT,
                Err(Waited::Done | Waited::Interrupted) => {}
            }
        }
    }
}

unsafe fn try_lock(me: *mut Logical, object: Object, way: Way) -> c_int {
    // SAFETY: by the caller's promise.
    unsafe {
        step(me, event_at(way.events().1, Key(object as usize)));
        let error = way.attempt(object);
        if error == 0 {
            way.note_taken(me, object);
        }
        error
    }
}

/// Unlocks and makes waiters ready, without a step.
unsafe fn unlock(object: Object, way: Way) -> c_int {
    let key = Key(object as usize);
    // SAFETY: by the caller's promise.
    unsafe {
        let error = way.release(object);
        let whole = if matches!(way, Way::Read | Way::Write) { Way::Write } else { way };
        if error == 0 && whole.is_free(object) {
            (*runtime()).handles.note_owner(key, None);
            freed(key, Shares::ALL);
        }
        error
    }
}

/// What a waiter of a condition variable does when it is woken.
fn relock(mutex: Object) -> Acquire {
    let key = Key(mutex as usize);
    // SAFETY: the key was made from a mutex on which a thread waits, so it exists.
    let is_free = |key: Key| unsafe { Way::Mutex.is_free(key.0 as Object) };
    Acquire { event: event_at(EventKind::MutexLock, key), key, is_free }
}

unsafe fn wait_on(me: *mut Logical, condition: Object, mutex: Object, deadline: Option<Moment>) -> c_int {
    let key = Key(condition as usize);
    let event = Event::cond_wait(ObjectId(key.0 as u64), ObjectId(mutex as u64));
    // SAFETY: by the caller's promise.
    unsafe {
        step(me, event);
        let error = unlock(mutex, Way::Mutex);
        if error != 0 {
            return error;
        }
        if wait(me, event, key, deadline, Some(relock(mutex))) == Waited::TimedOut {
            return match lock(me, mutex, Way::Mutex, None) {
                0 => ETIMEDOUT,
                error => error,
            };
        }
        match Way::Mutex.attempt(mutex) {
            EBUSY => lock(me, mutex, Way::Mutex, None),
            error => {
                Way::Mutex.note_taken(me, mutex);
                error
            }
        }
    }
}

unsafe fn signal(me: *mut Logical, condition: Object, count: u32) -> c_int {
    let key = Key(condition as usize);
    // SAFETY: by the caller's promise.
    unsafe {
        wake(key, count);
        let (all, kind) =
            (count != 1, if count == 1 { EventKind::CondSignal } else { EventKind::CondBroadcast });
        if outside::may_wait() {
            if all {
                real::pthread_cond_broadcast(condition)
            } else {
                real::pthread_cond_signal(condition)
            };
        }
        step(me, event_at(kind, key));
    }
    0
}

unsafe fn wait_for_semaphore(me: *mut Logical, semaphore: Object, deadline: Option<Moment>) -> c_int {
    let key = Key(semaphore as usize);
    // SAFETY: by the caller's promise.
    unsafe {
        let free = || value_of(semaphore) > 0;
        let attempt = || (free() && real::sem_trywait(semaphore) == 0).then_some(());
        match acquire(me, event_at(EventKind::SemWait, key), key, Shares::ALL, deadline, free, attempt) {
            Ok(()) => {
                if !free() {
                    taken(key, Shares::ALL);
                }
                0
            }
            Err(_) => fail_with(ETIMEDOUT),
        }
    }
}

unsafe fn value_of(semaphore: Object) -> c_int {
    let mut value = 0;
    // SAFETY: by the caller's promise.
    unsafe { real::sem_getvalue(semaphore, &mut value) };
    value
}

/// Functions of semaphores leave their error in `errno`, of which every C runtime has its own; the program's is the one
/// that the threads library was linked with, too.
unsafe fn fail_with(error: c_int) -> c_int {
    // SAFETY: returns the calling thread's place.
    unsafe { *real::_errno() = error };
    -1
}

unsafe fn freed_outside(object: Object, result: c_int) -> c_int {
    outside::did(Key(object as usize), Act::Freed);
    result
}

unsafe fn woken_outside(object: Object, count: u32, result: c_int) -> c_int {
    outside::did(Key(object as usize), Act::Woken(count));
    result
}

interpose_foreign! {
    fn pthread_mutex_lock(mutex: Object) -> c_int = real::pthread_mutex_lock(mutex), |me| {
        lock(me, mutex, Way::Mutex, None)
    }
    fn pthread_mutex_trylock(mutex: Object) -> c_int = real::pthread_mutex_trylock(mutex), |me| {
        try_lock(me, mutex, Way::Mutex)
    }
    fn pthread_mutex_timedlock(mutex: Object, until: *const Timespec) -> c_int
        = real::pthread_mutex_timedlock(mutex, until), |me| {
        lock(me, mutex, Way::Mutex, Some(moment_of(until)))
    }
    fn pthread_mutex_unlock(mutex: Object) -> c_int = freed_outside(mutex, real::pthread_mutex_unlock(mutex)), |me| {
        let error = unlock(mutex, Way::Mutex);
        step(me, event_at(EventKind::MutexUnlock, Key(mutex as usize)));
        error
    }

    fn pthread_spin_lock(spin: Object) -> c_int = real::pthread_spin_lock(spin), |me| {
        lock(me, spin, Way::Spin, None)
    }
    fn pthread_spin_trylock(spin: Object) -> c_int = real::pthread_spin_trylock(spin), |me| {
        try_lock(me, spin, Way::Spin)
    }
    fn pthread_spin_unlock(spin: Object) -> c_int = freed_outside(spin, real::pthread_spin_unlock(spin)), |me| {
        let error = unlock(spin, Way::Spin);
        step(me, event_at(EventKind::MutexUnlock, Key(spin as usize)));
        error
    }

    fn pthread_rwlock_rdlock(rwlock: Object) -> c_int = real::pthread_rwlock_rdlock(rwlock), |me| {
        lock(me, rwlock, Way::Read, None)
    }
    fn pthread_rwlock_wrlock(rwlock: Object) -> c_int = real::pthread_rwlock_wrlock(rwlock), |me| {
        lock(me, rwlock, Way::Write, None)
    }
    fn pthread_rwlock_tryrdlock(rwlock: Object) -> c_int = real::pthread_rwlock_tryrdlock(rwlock), |me| {
        try_lock(me, rwlock, Way::Read)
    }
    fn pthread_rwlock_trywrlock(rwlock: Object) -> c_int = real::pthread_rwlock_trywrlock(rwlock), |me| {
        try_lock(me, rwlock, Way::Write)
    }
    fn pthread_rwlock_timedrdlock(rwlock: Object, until: *const Timespec) -> c_int
        = real::pthread_rwlock_timedrdlock(rwlock, until), |me| {
        lock(me, rwlock, Way::Read, Some(moment_of(until)))
    }
    fn pthread_rwlock_timedwrlock(rwlock: Object, until: *const Timespec) -> c_int
        = real::pthread_rwlock_timedwrlock(rwlock, until), |me| {
        lock(me, rwlock, Way::Write, Some(moment_of(until)))
    }
    fn pthread_rwlock_unlock(rwlock: Object) -> c_int
        = freed_outside(rwlock, real::pthread_rwlock_unlock(rwlock)), |me| {
        let error = unlock(rwlock, Way::Write);
        step(me, event_at(EventKind::RwWriteUnlock, Key(rwlock as usize)));
        error
    }

    fn pthread_cond_wait(condition: Object, mutex: Object) -> c_int
        = { outside::waits(); freed_outside(mutex, real::pthread_cond_wait(condition, mutex)) }, |me| {
        wait_on(me, condition, mutex, None)
    }
    fn pthread_cond_timedwait(condition: Object, mutex: Object, until: *const Timespec) -> c_int
        = { outside::waits(); freed_outside(mutex, real::pthread_cond_timedwait(condition, mutex, until)) }, |me| {
        wait_on(me, condition, mutex, Some(moment_of(until)))
    }
    fn pthread_cond_signal(condition: Object) -> c_int
        = woken_outside(condition, 1, real::pthread_cond_signal(condition)), |me| { signal(me, condition, 1) }
    fn pthread_cond_broadcast(condition: Object) -> c_int
        = woken_outside(condition, u32::MAX, real::pthread_cond_broadcast(condition)), |me| {
        signal(me, condition, u32::MAX)
    }

    fn sem_wait(semaphore: Object) -> c_int = real::sem_wait(semaphore), |me| {
        wait_for_semaphore(me, semaphore, None)
    }
    fn sem_timedwait(semaphore: Object, until: *const Timespec) -> c_int = real::sem_timedwait(semaphore, until), |me| {
        wait_for_semaphore(me, semaphore, Some(moment_of(until)))
    }
    fn sem_trywait(semaphore: Object) -> c_int = real::sem_trywait(semaphore), |me| {
        let key = Key(semaphore as usize);
        step(me, event_at(EventKind::SemTryWait, key));
        if value_of(semaphore) <= 0 {
            return fail_with(EAGAIN);
        }
        let result = real::sem_trywait(semaphore);
        if value_of(semaphore) <= 0 {
            taken(key, Shares::ALL);
        }
        result
    }
    fn sem_post(semaphore: Object) -> c_int = freed_outside(semaphore, real::sem_post(semaphore)), |me| {
        let key = Key(semaphore as usize);
        let result = real::sem_post(semaphore);
        freed(key, Shares::ALL);
        step(me, event_at(EventKind::SemPost, key));
        result
    }
    fn sem_getvalue(semaphore: Object, value: *mut c_int) -> c_int = real::sem_getvalue(semaphore, value), |_| {
        real::sem_getvalue(semaphore, value)
    }
    fn _errno() -> *mut c_int = real::_errno(), |_| { real::_errno() }
}
