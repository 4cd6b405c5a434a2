//! RUSTSEC-2021-0124: a receiver closes and tries to receive while the sender sends; both use the value.
use std::thread;

fn main() {
    let (sender, mut receiver) = tokio::sync::oneshot::channel::<Box<u64>>();
    let sending = thread::spawn(move || sender.send(Box::new(7)).err().map(|value| *value));
    let receiving = thread::spawn(move || {
        receiver.close();
        receiver.try_recv().ok().map(|value| *value)
    });
    let (returned, received) = (sending.join().unwrap(), receiving.join().unwrap());
    assert_eq!((returned.is_some() as u32) + (received.is_some() as u32), 1, "{returned:?} {received:?}");
    assert_eq!(returned.or(received), Some(7));
}
