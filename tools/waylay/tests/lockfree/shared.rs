//! A counter of references by hand, as in an `Arc`. The bug: whether one is the last is asked after giving up one's share.
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

static SHARES: AtomicUsize = AtomicUsize::new(2);
static FREED: AtomicUsize = AtomicUsize::new(0);

fn give_up() {
    #[cfg(fixed)]
    let last = SHARES.fetch_sub(1, SeqCst) == 1;
    #[cfg(not(fixed))]
    let last = {
        SHARES.fetch_sub(1, SeqCst);
        SHARES.load(SeqCst) == 0
    };
    if last {
        FREED.fetch_add(1, SeqCst);
    }
}

fn main() {
    let threads: Vec<_> = (0..2).map(|_| std::thread::spawn(give_up)).collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(FREED.load(SeqCst), 1, "freed once");
}
