//! needs: postage 0.5.0
//! finds: assert within 2000
//!
//! The same window as in its broadcast channel: the receiver finds the queue empty, the sender sends and is dropped, and the
//! receiver says that the channel is closed.

use std::thread;

use postage::{mpsc, prelude::*};

fn main() {
    let (mut sender, mut receiver) = mpsc::channel::<u32>(2);
    let sending = thread::spawn(move || sender.blocking_send(7).is_ok());
    let received = receiver.blocking_recv();
    assert!(sending.join().unwrap(), "the receiver is alive");
    assert_eq!(received, Some(7), "a value that was sent is lost");
}
