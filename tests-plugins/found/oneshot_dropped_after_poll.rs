//! needs: oneshot 0.1.11
//! finds: crash within 1000
//!
//! A receiver that was polled is dropped while the sender sends: the sender uses the freed channel (changelog of 0.1.12).

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Wake, Waker},
    thread,
};

struct Nothing;

impl Wake for Nothing {
    fn wake(self: Arc<Self>) {}
}

fn main() {
    let (sender, mut receiver) = oneshot::channel::<Box<u64>>();
    let sending = thread::spawn(move || sender.send(Box::new(7)).is_ok());
    let waker = Waker::from(Arc::new(Nothing));
    let _ = Pin::new(&mut receiver).poll(&mut Context::from_waker(&waker));
    drop(receiver);
    sending.join().unwrap();
    drop(waker);
}
