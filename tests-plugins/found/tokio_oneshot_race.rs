//! needs: tokio 1.13.0 features = ["sync"]
//! fixed: tokio 1.13.1 features = ["sync"]
//! finds: assert within 20000
//!
//! A value that is sent after `close` is taken by both ends (RUSTSEC-2021-0124).

use std::thread;

use tokio::sync::oneshot;

fn main() {
    let (sender, mut receiver) = oneshot::channel::<Box<u64>>();
    let sending = thread::spawn(move || sender.send(Box::new(7)).err());
    receiver.close();
    let received = receiver.try_recv().ok();
    let returned = sending.join().unwrap();
    assert!(received.is_none() || returned.is_none(), "one value was received and returned");
    assert!([received, returned].into_iter().flatten().all(|value| *value == 7), "the value is torn");
}
