//! A library with what Rust's standard library synchronises by: a channel, a lock, counted references, a condition.

use std::sync::{Arc, Condvar, Mutex, OnceLock, RwLock, mpsc};

#[unsafe(no_mangle)]
pub extern "C" fn queue_run() -> u64 {
    static STARTED: OnceLock<u64> = OnceLock::new();
    let (sender, receiver) = mpsc::channel();
    let state = Arc::new((Mutex::new(0u64), Condvar::new(), RwLock::new(Vec::new())));
    let theirs = state.clone();
    let worker = std::thread::spawn(move || {
        for value in receiver {
            theirs.2.write().unwrap().push(value);
            *theirs.0.lock().unwrap() += value;
            theirs.1.notify_all();
        }
    });
    let first = *STARTED.get_or_init(|| 1);
    for value in first..=100 {
        sender.send(value).unwrap();
    }
    drop(sender);
    let mut sum = state.0.lock().unwrap();
    while *sum < 5050 {
        sum = state.1.wait(sum).unwrap();
    }
    let total = *sum;
    drop(sum);
    worker.join().unwrap();
    if state.2.read().unwrap().len() == 100 { total } else { 0 }
}
