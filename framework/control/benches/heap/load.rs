//! The measured process: allocation and nothing else, or allocation with the work that comes with it.

use std::hint::black_box;
use std::path::PathBuf;
use std::process::Command;

/// First argument of a measured process.
pub(crate) const WORKER: &str = "worker";

/// Objects alive at a time, per thread.
const LIVE: usize = 2_000;

/// This program as a measured process.
pub(crate) fn command(kind: &str, threads: usize, operations: u64) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("own path"));
    command.args([WORKER, kind, &threads.to_string(), &operations.to_string()]);
    command
}

/// The library under test, built beside this program.
pub(crate) fn library() -> PathBuf {
    let library = std::env::current_exe().expect("own path").with_file_name("libwaylay_control.so");
    assert!(library.is_file(), "{} is not built", library.display());
    library
}

/// Does the operations on each thread and prints the CPU nanoseconds of one. Before that comes half as many
/// unmeasured ones, in which heap, tables and caches find their size.
pub(crate) fn work(kind: &str, threads: &str, operations: &str) {
    let threads: usize = threads.parse().expect("threads");
    let operations: u64 = operations.parse().expect("operations");
    let body = match kind {
        "malloc" => malloc_only,
        "app" => app_like,
        "leak" => leaking_app,
        other => panic!("no load {other}"),
    };
    let workers: Vec<_> =
        (0..threads).map(|number| std::thread::spawn(move || body(number as u64 + 1, operations))).collect();
    for worker in workers {
        worker.join().expect("worker");
    }
    println!("{}", cpu_nanoseconds() as f64 / (operations * threads as u64) as f64);
}

/// A block is allocated and freed, and not even looked at.
fn malloc_only(seed: u64, operations: u64) {
    let mut random = Random(seed);
    for _ in 0..operations {
        black_box(Vec::<u8>::with_capacity(random.size()));
    }
}

/// Objects come and go in random order. Each is filled when it comes and summed up when it goes, which is
/// about the least that a program can do with memory it asked for.
fn app_like(seed: u64, operations: u64) {
    run(seed, operations, |_| ());
}

/// The same, and one object in a hundred is forgotten.
fn leaking_app(seed: u64, operations: u64) {
    run(seed, operations, |object| {
        if object.len() % 100 == 50 {
            forget_object(object)
        }
    });
}

#[inline(never)]
fn forget_object(object: &mut Vec<u8>) {
    black_box(std::mem::take(object).leak());
}

fn run(seed: u64, operations: u64, mut before_drop: impl FnMut(&mut Vec<u8>)) {
    let mut random = Random(seed);
    let mut objects: Vec<Vec<u8>> = vec![Vec::new(); LIVE];
    let mut sum = 0u64;
    for operation in 0..operations {
        let place = (random.next() >> 40) as usize % LIVE;
        let object = &mut objects[place];
        sum += object.iter().map(|byte| u64::from(*byte)).sum::<u64>();
        before_drop(object);
        *object = fresh_object(random.size(), operation as u8);
    }
    black_box(sum);
}

#[inline(never)]
fn fresh_object(size: usize, fill: u8) -> Vec<u8> {
    vec![fill | 1; size]
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0
    }

    /// Mostly small: 200 bytes on average, 1 KiB at most.
    fn size(&mut self) -> usize {
        let bits = self.next() >> 33;
        (16 + (bits % 1008) as usize) >> ((bits >> 10) % 5)
    }
}

fn cpu_nanoseconds() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
