// depth 2: load < store, load < store
// A load and a store are no update.
use std::sync::atomic::{AtomicUsize, Ordering};
static HITS: AtomicUsize = AtomicUsize::new(0);
fn hit() {
    let before = HITS.load(Ordering::SeqCst); // @load
    HITS.store(before + 1, Ordering::SeqCst); // @store
}
fn main() {
    let threads: Vec<_> = (0..2).map(|_| std::thread::spawn(hit)).collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(HITS.load(Ordering::SeqCst), 2);
}
