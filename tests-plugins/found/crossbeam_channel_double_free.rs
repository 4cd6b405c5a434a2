//! needs: crossbeam-channel 0.5.14
//! fixed: crossbeam-channel 0.5.15
//! finds: crash within 20000
//!
//! Two first senders and a receiver that is dropped: the first block is freed by the receiver and again with the channel
//! (RUSTSEC-2025-0024).

use std::thread;

use crossbeam_channel::unbounded;

fn main() {
    let (sender, receiver) = unbounded::<u32>();
    let senders: Vec<_> = (0..2)
        .map(|number| {
            let sender = sender.clone();
            thread::spawn(move || sender.send(number).is_ok())
        })
        .collect();
    drop(sender);
    drop(receiver);
    for sender in senders {
        let _sent = sender.join().unwrap();
    }
}
