//! needs: lock_api 0.3.0
//! fixed: lock_api 0.3.1
//! finds: assert within 1000
//!
//! A reentrant mutex writes its count after it was unlocked, over the count of the next owner (changelog of 0.3.1).

use std::{
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use lock_api::{GetThreadId, GuardSend, RawMutex, ReentrantMutex};

struct Spin(AtomicBool);

unsafe impl RawMutex for Spin {
    const INIT: Self = Spin(AtomicBool::new(false));
    type GuardMarker = GuardSend;

    fn lock(&self) {
        while !self.try_lock() {
            thread::yield_now();
        }
    }

    fn try_lock(&self) -> bool {
        !self.0.swap(true, Ordering::SeqCst)
    }

    fn unlock(&self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

struct Thread;

unsafe impl GetThreadId for Thread {
    const INIT: Self = Thread;

    fn nonzero_thread_id(&self) -> NonZeroUsize {
        thread_local!(static HERE: u8 = const { 0 });
        HERE.with(|here| NonZeroUsize::new(std::ptr::from_ref(here) as usize).unwrap())
    }
}

fn main() {
    let mutex = Arc::new(ReentrantMutex::<Spin, Thread, ()>::new(()));
    let other = Arc::clone(&mutex);
    let locking = thread::spawn(move || drop(other.lock()));
    let outer = mutex.lock();
    drop(mutex.lock());
    drop(outer);
    locking.join().unwrap();
    assert!(mutex.try_lock().is_some(), "nobody holds the mutex, and it is locked");
}
