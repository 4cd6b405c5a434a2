//! What it costs to begin a run from a snapshot, and whether such runs are what forked ones are:
//! `cargo bench -p waylay-control --bench restart`.
//!
//! `-- numbers` only measures: forked and restored runs of the same seeds in turn, within the same minute. `-- oracle SEEDS`
//! only compares, ten thousand seeds of every program unless told otherwise. `-- flat RUNS` shows that memory does not grow
//! over ten million runs.

#[path = "../tests/harness/mod.rs"]
mod harness;

use std::time::{Duration, Instant};

use harness::Program;
use harness::restored::{Process, compare, order};
use harness::zoo::ANIMALS;

/// How long each line is measured for, each way, and in how many turns.
const TIME: Duration = Duration::from_millis(1500);
const TURNS: u32 = 3;
const BATCH: u64 = 500;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let number =
        |at: usize, otherwise| arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(otherwise);
    match arguments.first().map(String::as_str) {
        Some("numbers") => numbers(),
        Some("oracle") => oracle(number(1, 10_000)),
        Some("flat") => flat(number(1, 10_000_000)),
        _ => {
            numbers();
            oracle(number(0, 10_000));
            flat(10_000_000);
        }
    }
}

/// Runs per second, best of some turns, and processor microseconds per run.
struct Speed {
    per_second: f64,
    cpu: f64,
}

fn numbers() {
    println!("| program | forked/s | µs CPU | restored/s | µs CPU | ratio |");
    println!("|---|---|---|---|---|---|");
    for (what, file, arguments) in [
        ("3 threads, about 50 steps", "order.c", &[][..]),
        ("the same in Rust", "zoo.rs", &["lost_update", "fixed"]),
        ("C++ standard library", "standard_library.cpp", &[]),
        ("100 MB mapped, 1,000 pages changed", "heavy.c", &[]),
        ("100 threads at once", "churn.c", &["100", "100"]),
        ("100 threads, 3 at once", "churn.c", &["100", "3"]),
    ] {
        let program = Program::build(file).with(arguments);
        let mut forks = Process::start(&program);
        let mut snapshots = Process::start(&program);
        let orders: Vec<_> = (0..BATCH).map(order).collect();
        snapshots
            .restore(&orders[..50])
            .iter()
            .for_each(|answer| assert!(answer.is_ok(), "{what}: {answer:?}"));
        let (mut forked, mut restored) =
            (Speed { per_second: 0.0, cpu: 0.0 }, Speed { per_second: 0.0, cpu: 0.0 });
        for _ in 0..TURNS {
            let mut next = 0;
            take_best(&mut forked, &mut forks, |process| {
                let (settings, parameters) = order(next);
                next += 1;
                process.fork(settings, &parameters);
                1
            });
            take_best(&mut restored, &mut snapshots, |process| process.restore(&orders).len() as u64);
        }
        println!(
            "| {what} | {:.0} | {:.0} | {:.0} | {:.1} | {:.1} |",
            forked.per_second,
            forked.cpu,
            restored.per_second,
            restored.cpu,
            restored.per_second / forked.per_second
        );
    }
}

fn take_best(best: &mut Speed, process: &mut Process, mut run: impl FnMut(&mut Process) -> u64) {
    let (begun, before, mut runs) = (Instant::now(), process.cpu_seconds(), 0);
    while begun.elapsed() < TIME / TURNS {
        runs += run(process);
    }
    let per_second = runs as f64 / begun.elapsed().as_secs_f64();
    if per_second > best.per_second {
        *best = Speed { per_second, cpu: (process.cpu_seconds() - before) / runs as f64 * 1e6 };
    }
}

fn oracle(seeds: u64) {
    println!("\ncomparing {seeds} seeds of every program, forked and restored");
    let mut programs: Vec<(&str, Vec<&str>)> =
        ANIMALS.iter().map(|&(file, name, _)| (file, vec![name])).collect();
    for family in [
        "mutexes",
        "robust",
        "conditions",
        "rwlocks",
        "semaphores",
        "barriers",
        "spin",
        "once",
        "sleeps",
        "joins",
        "c11",
    ] {
        programs.push(("families.c", vec![family]));
    }
    for hazard in [
        "pipe",
        "polling",
        "fault_handler",
        "clock_loop",
        "randomness",
        "exit_from_thread",
        "main_returns",
        "main_leaves",
        "signal_masks",
        "cancellation",
        "cancelled_before_waiting",
        "leaving_from_within",
    ] {
        programs.push(("hazards.c", vec![hazard]));
    }
    programs.extend([
        ("order.c", vec![]),
        ("two_locks.c", vec![]),
        ("yields.c", vec!["5"]),
        ("churn.c", vec!["12", "3"]),
        ("standard_library.cpp", vec![]),
        ("standard_library.rs", vec![]),
    ]);
    let (mut same, mut wrong) = (0, 0);
    for (file, arguments) in &programs {
        let found = compare(&Program::build(file).with(arguments), seeds);
        same += found.restored;
        wrong += found.differences.len();
        if !found.differences.is_empty() || !found.given_back.is_empty() {
            println!("{file} {arguments:?}: {found:#?}");
        }
    }
    println!("{} programs, {same} runs made both ways, {wrong} programs or runs that differ", programs.len());
    assert_eq!(wrong, 0);
}

fn flat(runs: u64) {
    println!("\nmemory of the process over {runs} restored runs");
    let mut snapshots = Process::start(&Program::build("order.c"));
    let mut made = 0;
    let mut next = 1;
    while made < runs {
        let orders: Vec<_> = (made..made + BATCH).map(order).collect();
        assert!(snapshots.restore(&orders).iter().all(Result::is_ok));
        made += BATCH;
        if made >= runs * next / 10 {
            let (resident, mappings) = snapshots.memory();
            println!("{made} runs: {resident} kB resident, {mappings} mappings");
            next += 1;
        }
    }
}
