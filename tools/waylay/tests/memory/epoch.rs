//! A reader that pins an epoch: the pin has to be seen before the reader takes a reference, or what it refers to is reclaimed
//! by somebody who looks at the pin.
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::thread;

static PINNED: AtomicBool = AtomicBool::new(false);
static HEAD: AtomicUsize = AtomicUsize::new(1);
static RECLAIMED: AtomicBool = AtomicBool::new(false);

fn read() {
    PINNED.store(true, Ordering::Release);
    if cfg!(fixed) {
        fence(Ordering::SeqCst);
    }
    if HEAD.load(Ordering::Acquire) != 0 {
        assert!(!RECLAIMED.load(Ordering::Acquire), "reclaimed while pinned");
    }
    PINNED.store(false, Ordering::Release);
}

fn main() {
    let reader = thread::spawn(read);
    HEAD.swap(0, Ordering::SeqCst);
    if !PINNED.load(Ordering::Acquire) {
        RECLAIMED.store(true, Ordering::Release);
    }
    reader.join().unwrap();
}
