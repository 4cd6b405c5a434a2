//! Streams locked by hand: `flockfile`.
//!
//! libc takes the same lock inside `printf` and its like, where no scheduler sees it. So that nobody runs into it,
//! a thread is not preempted while it holds a stream; only a wait of its own lets others run.

use core::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

use libc::{FILE, c_int, c_void};
use waylay_schedule::EventKind;

use super::interpose;
use crate::runtime::{Token, acquire, event_at, freed, step, taken};
use crate::sched::{Key, Shares};

/// Offset of the pointer to the lock in glibc's FILE on x86-64, and of the owner in the lock.
const LOCK: usize = 0x88;
const OWNER: usize = 8;

unsafe fn is_free(me: &mut Token, stream: *mut FILE) -> bool {
    // SAFETY: by the caller's promise that this is an open stream; the first word is the lock, the owner follows.
    unsafe {
        let lock = stream.byte_add(LOCK).cast::<*mut c_void>().read();
        let word = (*lock.cast::<AtomicI32>()).load(Ordering::Relaxed);
        let owner = (*lock.byte_add(OWNER).cast::<AtomicPtr<c_void>>()).load(Ordering::Relaxed);
        word == 0 || owner as usize == (*me.thread()).handle
    }
}

interpose! {
    fn flockfile(stream: *mut FILE) -> (), |me| {
        let key = Key(stream as usize);
        let event = event_at(EventKind::MutexLock, key);
        let attempt = |_: &mut Token| (real::ftrylockfile(stream) == 0).then_some(());
        while acquire(me, event, key, Shares::ALL, None, |me| is_free(me, stream), attempt).is_err() {}
        taken(me, key, Shares::ALL);
        (*me.thread()).unpreemptible += 1;
    }

    fn ftrylockfile(stream: *mut FILE) -> c_int, |me| {
        let key = Key(stream as usize);
        step(me, event_at(EventKind::MutexTryLock, key));
        let result = real::ftrylockfile(stream);
        if result == 0 {
            taken(me, key, Shares::ALL);
            (*me.thread()).unpreemptible += 1;
        }
        result
    }

    fn funlockfile(stream: *mut FILE) -> (), |me| {
        let key = Key(stream as usize);
        real::funlockfile(stream);
        (*me.thread()).unpreemptible = (*me.thread()).unpreemptible.saturating_sub(1);
        freed(me, key, Shares::ALL);
        step(me, event_at(EventKind::MutexUnlock, key));
    }
}
