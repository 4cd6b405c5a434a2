// d = 2: two plain words that belong together, written and read without a lock.
use std::cell::UnsafeCell;
use std::thread;

struct Pair(UnsafeCell<[u64; 16]>);

// SAFETY: none, which is the point.
unsafe impl Sync for Pair {}

static PAIR: Pair = Pair(UnsafeCell::new([0; 16]));

fn writes() {
    let pair = PAIR.0.get();
    unsafe { // SAFETY: none but for the lifetime: two threads get here at a time.
        (*pair)[0] = 7;
        (*pair)[15] = 7;
    }
}

fn reads() {
    let pair = PAIR.0.get();
    let (first, last) = unsafe { ((*pair)[0], (*pair)[15]) }; // SAFETY: as above.
    if first == 7 && last == 0 {
        std::process::abort();
    }
}

fn main() {
    let threads = [thread::spawn(writes), thread::spawn(reads)];
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
