//! needs: oneshot 0.2.1 features = ["std", "async"]
//! finds: crash within 3000
//!
//! A receiver that was polled is dropped while the sender takes its waker: the receiver reads its own DISCONNECTED, takes it for
//! the sender's answer, and frees the channel, to which the sender then writes.

use std::{
    future::{Future, IntoFuture},
    pin::pin,
    sync::Arc,
    task::{Context, Wake, Waker},
    thread,
};

struct Nothing;

impl Wake for Nothing {
    fn wake(self: Arc<Self>) {}
}

fn main() {
    let (sender, receiver) = oneshot::channel::<Box<u64>>();
    let sending = thread::spawn(move || sender.send(Box::new(7)).is_ok());
    {
        let waker = Waker::from(Arc::new(Nothing));
        let mut receiver = pin!(receiver.into_future());
        let _ = receiver.as_mut().poll(&mut Context::from_waker(&waker));
    }
    sending.join().unwrap();
}
