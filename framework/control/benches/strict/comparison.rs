//! The pair of threads whose schedules are counted, without control and in shuttle: what ours is compared with.
//!
//! In shuttle the threads are coroutines and the mutexes its own, because it tests programs that were written for it.

use std::sync::Arc;

use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};

use crate::{ROUNDS, measure, schedule_of_two};

/// Seed of shuttle's schedulers.
const SEED: u64 = 1;

/// Threads that the kernel schedules, made anew for every run.
pub(crate) fn free(runs: u64) {
    let times = measure(|| (0..runs).for_each(|_| schedule_of_two(ROUNDS)));
    println!("{} {} 0 0", times.cpu, times.wall);
}

/// The same logic in shuttle.
pub(crate) fn shuttle(scheduler: &str, runs: usize) {
    match scheduler {
        "pct" => run(PctScheduler::new_from_seed(SEED, 2, runs)),
        _ => run(RandomScheduler::new_from_seed(SEED, runs)),
    }
}

fn run(scheduler: impl Scheduler + 'static) {
    let runner = shuttle::Runner::new(scheduler, shuttle::Config::new());
    let times = measure(|| {
        runner.run(|| {
            let mutexes = Arc::new((shuttle::sync::Mutex::new(()), shuttle::sync::Mutex::new(())));
            let threads = [(); 2].map(|()| {
                let mutexes = mutexes.clone();
                shuttle::thread::spawn(move || two_locks(&mutexes.0, &mutexes.1))
            });
            for thread in threads {
                thread.join().expect("nothing fails");
            }
        });
    });
    println!("{} {} 0 0", times.cpu, times.wall);
}

fn two_locks(first: &shuttle::sync::Mutex<()>, second: &shuttle::sync::Mutex<()>) {
    for _ in 0..ROUNDS {
        drop(first.lock());
    }
    drop(second.lock());
    for _ in 0..ROUNDS {
        drop(first.lock());
    }
}
