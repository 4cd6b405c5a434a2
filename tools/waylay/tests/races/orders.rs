//! Atomic operations whose memory orders order two threads; with a second argument one promises too little.

use std::cell::UnsafeCell;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, fence};
use std::thread;

struct Shared(UnsafeCell<u64>);
// SAFETY: none where the program is the broken one: that is its point.
unsafe impl Sync for Shared {}

static SHARED: Shared = Shared(UnsafeCell::new(0));
static FLAG: AtomicBool = AtomicBool::new(false);
static VERSION: AtomicUsize = AtomicUsize::new(0);

fn add() {
    // SAFETY: none where the program is the broken one: this race is what is to be found.
    unsafe { SHARED.0.get().write(black_box(SHARED.0.get().read() + 1)) }
}

fn both(one: impl FnOnce() + Send, other: impl FnOnce() + Send) {
    thread::scope(|scope| {
        scope.spawn(one);
        scope.spawn(other);
    });
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let broken = arguments.len() > 2;
    match arguments[1].as_str() {
        "release" => both(
            || {
                add();
                if broken { FLAG.store(true, Ordering::Relaxed) } else { FLAG.store(true, Ordering::Release) }
            },
            || {
                if FLAG.load(Ordering::Acquire) {
                    add();
                }
            },
        ),
        "exchange" => both(
            || {
                add();
                VERSION.store(1, Ordering::Release);
            },
            || {
                let (acquire, relaxed) = (Ordering::Acquire, Ordering::Relaxed);
                let exchanged = if broken {
                    VERSION.compare_exchange(1, 2, relaxed, relaxed)
                } else {
                    VERSION.compare_exchange(1, 2, acquire, relaxed)
                };
                if exchanged.is_ok() {
                    add();
                }
            },
        ),
        "fences" => both(
            || {
                add();
                fence(Ordering::Release);
                FLAG.store(true, Ordering::Relaxed);
            },
            || {
                if FLAG.load(Ordering::Relaxed) {
                    if !broken {
                        fence(Ordering::Acquire);
                    }
                    add();
                }
            },
        ),
        "claim" => {
            // Who comes second takes what the first has made, which only its failure promises.
            let place = AtomicPtr::new(std::ptr::null_mut());
            let claim = || {
                let mine = Box::into_raw(Box::new(black_box(7)));
                let (null, release, relaxed) = (std::ptr::null_mut(), Ordering::Release, Ordering::Relaxed);
                let claimed = if broken {
                    place.compare_exchange(null, mine, release, relaxed)
                } else {
                    place.compare_exchange(null, mine, release, Ordering::Acquire)
                };
                if let Err(theirs) = claimed {
                    // SAFETY: both live until the program ends, but for the order that is what this is about.
                    assert_eq!(unsafe { *theirs }, 7);
                }
            };
            both(claim, claim);
        }
        other => panic!("there is no {other}"),
    }
}
