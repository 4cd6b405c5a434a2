//! needs: rusty_pool 1.0.0
//! finds: assert within 1000
//!
//! A worker takes a task out of the queue before it counts itself as busy: in between `join` sees an empty queue and idle workers
//! only, and returns although the task has not been run.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use rusty_pool::ThreadPool;

fn main() {
    let run = Arc::new(AtomicUsize::new(0));
    let pool = ThreadPool::new(1, 1, Duration::from_secs(1));
    for _ in 0..2 {
        let run = Arc::clone(&run);
        pool.execute(move || {
            run.fetch_add(1, Ordering::SeqCst);
        });
    }
    pool.join();
    let run = run.load(Ordering::SeqCst);
    assert_eq!(run, 2, "join returned after {run} of 2 tasks");
}
