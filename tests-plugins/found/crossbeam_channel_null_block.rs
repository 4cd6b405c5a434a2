//! needs: crossbeam-channel 0.5.7
//! fixed: crossbeam-channel 0.5.8
//! finds: assert within 30000
//!
//! Two first senders and a receiver that is dropped: the receiver reads through the block that is not there yet
//! (changelog of 0.5.8: "race condition in unbounded channel").

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
