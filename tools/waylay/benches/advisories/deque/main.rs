//! RUSTSEC-2021-0093: a batch of tasks is stolen from a buffer that their owner has replaced meanwhile: some are taken
//! twice, others never.
use crossbeam_deque::Worker;
use std::thread;

/// As many tasks as the first buffer holds.
const FULL: u32 = 64;

fn main() {
    let worker = Worker::new_lifo();
    for task in 0..FULL {
        worker.push(task);
    }
    let stealer = worker.stealer();
    let thief = thread::spawn(move || {
        let own = Worker::new_lifo();
        let _ = stealer.steal_batch(&own);
        std::iter::from_fn(|| own.pop()).collect::<Vec<u32>>()
    });
    // One more than there is room for, then nearly all of them back, then new ones in their places.
    worker.push(FULL);
    let mut got: Vec<u32> = (0..FULL).filter_map(|_| worker.pop()).collect();
    worker.push(FULL + 1);
    worker.push(FULL + 2);
    got.extend(thief.join().unwrap());
    got.extend(std::iter::from_fn(|| worker.pop()));
    got.sort_unstable();
    assert!(got.into_iter().eq(0..FULL + 3), "every task once");
}
