//! Two threads send a number to and fro, and a third counts, until a fourth says that it is enough.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;

static ENOUGH: AtomicBool = AtomicBool::new(false);
static ROUNDS: AtomicU64 = AtomicU64::new(0);

fn main() {
    let (to, from_other) = channel::<u64>();
    let (back, from_one) = channel::<u64>();
    to.send(0).unwrap();
    let other = thread::spawn(move || {
        while let Ok(number) = from_other.recv() {
            if back.send(number + 1).is_err() {
                break;
            }
        }
    });
    let one = thread::spawn(move || {
        while !ENOUGH.load(Ordering::Acquire) {
            let number = from_one.recv().unwrap();
            to.send(number + 1).unwrap();
        }
    });
    let counts = thread::spawn(|| {
        while !ENOUGH.load(Ordering::Acquire) {
            ROUNDS.fetch_add(1, Ordering::Relaxed);
            std::hint::spin_loop();
        }
    });
    let ends = thread::spawn(|| ENOUGH.store(true, Ordering::Release));
    for thread in [other, one, counts, ends] {
        thread.join().unwrap();
    }
}
