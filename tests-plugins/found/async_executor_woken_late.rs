//! needs: async-executor 1.14.0
//! fixed: async-executor 1.14.1
//! finds: crash or deadlock within 5000
//!
//! A task is woken while its executor is dropped: the waker uses the executor's freed state (changelog of 1.14.1).

use std::{
    future::poll_fn,
    sync::{Arc, Mutex},
    task::{Poll, Waker},
    thread,
};

use async_executor::Executor;

fn main() {
    let executor = Executor::new();
    let kept = Arc::new(Mutex::new(None::<Waker>));
    let keep = Arc::clone(&kept);
    executor
        .spawn(poll_fn(move |context| {
            *keep.lock().unwrap() = Some(context.waker().clone());
            Poll::<()>::Pending
        }))
        .detach();
    assert!(executor.try_tick(), "the task is ready");
    let waker = kept.lock().unwrap().take().expect("the task was polled");
    let waking = thread::spawn(move || waker.wake());
    drop(executor);
    waking.join().unwrap();
}
