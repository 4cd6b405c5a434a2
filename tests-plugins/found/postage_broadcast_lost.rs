//! needs: postage 0.5.0
//! finds: assert within 2000
//!
//! A receiver finds nothing, then the sender sends and is dropped, then the receiver sees that the channel is closed and says so:
//! what was sent in between is lost.

use std::thread;

use postage::{broadcast, prelude::*};

fn main() {
    let (mut sender, mut receiver) = broadcast::channel::<u32>(2);
    let sending = thread::spawn(move || sender.blocking_send(7).is_ok());
    let received = receiver.blocking_recv();
    assert!(sending.join().unwrap(), "the receiver is alive");
    assert_eq!(received, Some(7), "a value that was sent is lost");
}
