//! Two threads take a lock again and again: Rust's own, or the C library's (`--cfg fixed`).

use std::cell::UnsafeCell;
use std::sync::Mutex;
use std::thread;

struct Counter {
    own: Mutex<u64>,
    libc: UnsafeCell<[u64; 5]>,
    count: UnsafeCell<u64>,
}

// SAFETY: `count` is accessed with the lock `libc` held.
unsafe impl Sync for Counter {}

unsafe extern "C" {
    fn pthread_mutex_lock(lock: *mut [u64; 5]) -> i32;
    fn pthread_mutex_unlock(lock: *mut [u64; 5]) -> i32;
}

static COUNTER: Counter =
    Counter { own: Mutex::new(0), libc: UnsafeCell::new([0; 5]), count: UnsafeCell::new(0) };

fn add() {
    if cfg!(fixed) {
        // SAFETY: a lock of zeroes is free; what it protects is accessed here only.
        unsafe {
            pthread_mutex_lock(COUNTER.libc.get());
            *COUNTER.count.get() += 1;
            pthread_mutex_unlock(COUNTER.libc.get());
        }
    } else {
        *COUNTER.own.lock().unwrap() += 1;
    }
}

fn main() {
    let threads: Vec<_> = (0..2).map(|_| thread::spawn(|| (0..10).for_each(|_| add()))).collect();
    for thread in threads {
        thread.join().unwrap();
    }
}
