//! POSIX threads as mingw has them, in a library of their own (`libwinpthread-1.dll`).
//!
//! Its locks never leave user space while nobody holds them, so what it calls of Windows would be too few steps, and what
//! it calls when it makes a thread too many: each function of it is one step, as on Linux. The real objects are used
//! throughout, through the functions that only try. A program that has the library linked into itself calls it without
//! an import table, and is not seen here.

mod barrier;
mod condition;
mod mutex;
mod once;
mod rwlock;
mod semaphore;
mod sleep;
mod spin;
mod thread;

use core::ffi::c_int;

use waylay_scheduler::Moment;

pub(crate) use mutex::Mutexes;

use super::{Foreign, Hook, clock};
use crate::runtime::Token;

pub(super) static FAMILIES: [&[Hook]; 9] = [
    barrier::HOOKS,
    condition::HOOKS,
    mutex::HOOKS,
    once::HOOKS,
    rwlock::HOOKS,
    semaphore::HOOKS,
    sleep::HOOKS,
    spin::HOOKS,
    thread::HOOKS,
];

/// Error numbers of mingw.
const EINTR: c_int = 4;
const EAGAIN: c_int = 11;
const EBUSY: c_int = 16;
const EINVAL: c_int = 22;
const EDEADLK: c_int = 36;
const ETIMEDOUT: c_int = 138;

/// Seconds, and nanoseconds below one.
#[repr(C)]
#[derive(Clone, Copy)]
struct Timespec {
    seconds: i64,
    nanoseconds: i32,
}

const SECOND: u64 = 1_000_000_000;

impl Timespec {
    fn is_valid(self) -> bool {
        (0..SECOND as i32).contains(&self.nanoseconds)
    }

    /// Nanoseconds; a time before zero is zero.
    fn total(self) -> u64 {
        let seconds = u64::try_from(self.seconds).unwrap_or(0);
        seconds.saturating_mul(SECOND).saturating_add(u64::try_from(self.nanoseconds).unwrap_or(0))
    }
}

/// The moment of a wall-clock time.
fn moment_of(me: &mut Token, until: &Timespec) -> Moment {
    clock::moment_of_unix_time(me, until.total())
}

/// The moment that lies so far ahead.
fn after(me: &mut Token, span: &Timespec) -> Moment {
    me.run().sched.clock.after(span.total())
}

/// Sets the error number of C and returns what says that there is one.
fn fail(error: c_int) -> c_int {
    static ERRNO: Foreign = Foreign::new("_errno\0");
    // SAFETY: every C runtime has the function, with this type, and it returns a place of the calling thread's own.
    unsafe {
        let place: unsafe extern "C" fn() -> *mut c_int = core::mem::transmute(ERRNO.address());
        *place() = error;
    }
    -1
}
