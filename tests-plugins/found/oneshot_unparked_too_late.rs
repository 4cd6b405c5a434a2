//! needs: oneshot 0.1.3
//! fixed: oneshot 0.1.5
//! finds: crash within 200000
//!
//! The sender unparks a receiver that has already left and freed the channel (changelog of 0.1.4).

use std::{thread, time::Duration};

fn main() {
    let (sender, receiver) = oneshot::channel::<u64>();
    let receiving = thread::spawn(move || receiver.recv_timeout(Duration::from_millis(1)));
    let sent = sender.send(7).is_ok();
    let received = receiving.join().unwrap();
    assert!(sent || received.is_err(), "received what was not sent");
}
