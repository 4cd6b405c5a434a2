//! needs: crossfire 3.1.22
//! finds: deadlock within 200000
//!
//! crossfire 3.1.22: a receiver that times out while it is being woken takes the wake-up with it, and the next receiver sleeps
//! for ever although an item is in the queue.

use std::{thread, time::Duration};

use crossfire::mpmc;

fn main() {
    let (sender, receiver) = mpmc::bounded_blocking::<u32>(1);
    let patient = receiver.clone();
    let hurried = thread::spawn(move || receiver.recv_timeout(Duration::from_millis(1)).is_ok());
    let patient = thread::spawn(move || patient.recv().expect("the sender is alive"));

    sender.send(1).expect("both receivers are alive");
    if hurried.join().unwrap() {
        sender.send(2).expect("the patient receiver is alive");
    }
    // The sender stays alive until the patient receiver has its item, so that only a lost wake-up can keep it waiting.
    patient.join().unwrap();
    drop(sender);
}
