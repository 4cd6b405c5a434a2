//! needs: kanal 0.1.1 default-features = false
//! finds: assert within 1000
//!
//! kanal 0.1.1: `send_option_timeout` drops the value that a receiver has taken from its stack, so that it is dropped twice.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};

static DROPPED: AtomicUsize = AtomicUsize::new(0);

struct Counted;

impl Drop for Counted {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, Ordering::SeqCst);
    }
}

fn main() {
    let (sender, receiver) = kanal::bounded::<Counted>(0);
    let receiving = thread::spawn(move || drop(receiver.recv()));
    let mut value = Some(Counted);
    let sent = sender.send_option_timeout(&mut value, Duration::from_millis(1));
    drop((sender, value));
    receiving.join().unwrap();
    let dropped = DROPPED.load(Ordering::SeqCst);
    assert_eq!(dropped, 1, "one value was dropped {dropped} times (sent: {sent:?})");
}
