//! needs: kanal 0.1.1 default-features = false
//! finds: assert within 6000
//!
//! kanal 0.1.1: `send_timeout` forgets the value when the time is over: it is never dropped.

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
    let sent = sender.send_timeout(Counted, Duration::from_millis(1));
    drop(sender);
    receiving.join().unwrap();
    let dropped = DROPPED.load(Ordering::SeqCst);
    assert_eq!(dropped, 1, "one value was dropped {dropped} times (sent: {sent:?})");
}
