//! needs: crossbeam-deque 0.8.0
//! fixed: crossbeam-deque 0.8.1
//! finds: assert within 40000
//!
//! A batch is stolen while the owner's buffer grows: a task is taken twice, another one never (RUSTSEC-2021-0093).

use std::{sync::Arc, thread};

use crossbeam_deque::{Stealer, Worker};

const FILLED: usize = 64;

fn steal(stealer: &Stealer<usize>) -> Vec<usize> {
    let own = Worker::new_lifo();
    let _ = stealer.steal_batch(&own);
    std::iter::from_fn(|| own.pop()).collect()
}

fn main() {
    let worker = Worker::new_lifo();
    for task in 0..FILLED {
        worker.push(task);
    }
    let stealer = Arc::new(worker.stealer());
    let thief = thread::spawn(move || steal(&stealer));
    let mut taken = Vec::new();
    // The buffer has room for 64: it grows here, and what comes next lies in the new one only.
    worker.push(FILLED);
    for _ in 0..FILLED {
        taken.extend(worker.pop());
    }
    for task in 0..FILLED {
        worker.push(1000 + task);
    }
    taken.extend(thief.join().unwrap());
    taken.extend(std::iter::from_fn(|| worker.pop()));
    taken.sort_unstable();
    let wanted: Vec<_> = (0..=FILLED).chain(1000..1000 + FILLED).collect();
    assert!(taken == wanted, "tasks were lost or taken twice: {taken:?}");
}
