// Statistics that two threads keep without a lock, and a cell that is thought to be one thread's own.
use std::cell::UnsafeCell;
use std::sync::{Arc, Mutex};
use std::thread;

struct Stats {
    #[allow(dead_code)]
    lock: Mutex<()>,
    hits: UnsafeCell<u64>,
    bytes: UnsafeCell<u64>,
}

unsafe impl Sync for Stats {} // SAFETY: none unless it is built as the fixed one, which locks.

impl Stats {
    fn hit(&self, bytes: u64) {
        #[cfg(fixed)]
        let _held = self.lock.lock().unwrap();
        // SAFETY: none unless it is built as the fixed one: this race is what is to be found.
        unsafe {
            *self.hits.get() += 1;
            *self.bytes.get() += bytes;
        }
    }
}

fn main() {
    let stats = Arc::new(Stats { lock: Mutex::new(()), hits: UnsafeCell::new(0), bytes: UnsafeCell::new(0) });
    let threads: Vec<_> = (1..=3)
        .map(|n| {
            let stats = stats.clone();
            thread::spawn(move || stats.hit(10 * n))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    unsafe { // SAFETY: the threads have ended.
        assert_eq!((*stats.hits.get(), *stats.bytes.get()), (3, 60));
    }
}
