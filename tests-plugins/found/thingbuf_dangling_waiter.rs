//! needs: thingbuf 0.1.6
//! finds: assert within 1000
//!
//! `send_timeout` leaves its waiter, which lies on its stack, in the channel's queue when the time is over: the receiver then
//! writes to a stack frame that is gone.

use std::{thread, time::Duration};

use thingbuf::mpsc::blocking;

fn main() {
    let (sender, receiver) = blocking::channel::<u64>(1);
    let sending = thread::spawn(move || {
        (1..=2).filter(|value| sender.send_timeout(*value, Duration::from_millis(1)).is_ok()).count()
    });
    let received = std::iter::from_fn(|| receiver.recv()).count();
    assert_eq!(sending.join().unwrap(), received, "what was sent is not what was received");
}
