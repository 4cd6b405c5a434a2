//! A counter without any synchronisation, as unsafe code has it. The bug is the race itself.
use std::cell::UnsafeCell;
use std::sync::Mutex;

struct Counter(UnsafeCell<u32>);
// SAFETY: not safe at all: this is the bug.
unsafe impl Sync for Counter {}
static COUNTER: Counter = Counter(UnsafeCell::new(0));
static LOCK: Mutex<()> = Mutex::new(());

fn add() {
    #[cfg(fixed)]
    let _guard = LOCK.lock().unwrap();
    #[cfg(not(fixed))]
    let _ = &LOCK;
    // SAFETY: see above.
    unsafe { *COUNTER.0.get() += 1 };
}

fn main() {
    let threads: Vec<_> = (0..2).map(|_| std::thread::spawn(add)).collect();
    for thread in threads {
        thread.join().unwrap();
    }
    // SAFETY: the threads have ended.
    assert_eq!(unsafe { *COUNTER.0.get() }, 2);
}
