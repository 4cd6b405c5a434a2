//! needs: lockfree 0.5.1
//! finds: race within 3000
//! asks: races
//!
//! lockfree 0.5.1: sender and receiver of an mpsc channel agree by exchanges with `Relaxed` on who frees it, so that it may be
//! freed before the other has done with it.

use std::thread;

use lockfree::channel::mpsc;

fn main() {
    let (sender, mut receiver) = mpsc::create::<Box<u64>>();
    thread::scope(|scope| {
        scope.spawn(move || drop(sender.send(Box::new(7))));
        scope.spawn(move || drop(receiver.recv()));
    });
}
