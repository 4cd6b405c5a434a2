//! How long evidence takes, and how long the target stands still for it.
//!
//! `cargo bench -p waylay-evidence` prints one table; the medians of a few runs, milliseconds.

#[path = "../tests/target/mod.rs"]
mod target;

use std::time::{Duration, Instant};

use target::Program;
use waylay_evidence::{CaptureOptions, CodeAddress, DumpLimits, Symbolizer, capture, minidump};

const RUNS: usize = 15;

fn median(mut values: Vec<Duration>) -> f64 {
    values.sort();
    values[values.len() / 2].as_secs_f64() * 1000.0
}

fn largest(values: &[Duration]) -> f64 {
    values.iter().max().map_or(0.0, |value| value.as_secs_f64() * 1000.0)
}

fn measure(program: &Program, threads: usize, mode: &str) {
    let target = program.start(&[&threads.to_string(), mode]);
    std::thread::sleep(Duration::from_millis(50));
    let (mut stopped, mut captured, mut cold, mut warm, mut dumped) =
        (vec![], vec![], vec![], vec![], vec![]);
    let mut symbolizer = Symbolizer::default();
    let mut frames = 0;
    for run in 0..RUNS {
        let snapshot = capture(target.pid(), &CaptureOptions::default()).expect("capture");
        assert_eq!(snapshot.threads.len(), threads);
        stopped.push(snapshot.stopped_for);
        captured.push(snapshot.took);
        let began = Instant::now();
        let stacks = symbolizer.stacks(&snapshot);
        if run == 0 {
            cold.push(began.elapsed())
        } else {
            warm.push(began.elapsed())
        }
        frames = stacks.iter().map(|stack| stack.frames.len()).sum();
        let began = Instant::now();
        minidump(target.pid(), &program.directory().join("dump.dmp"), None, &DumpLimits::default())
            .expect("dump");
        dumped.push(began.elapsed());
    }
    println!(
        "{threads:>7}  {mode:<7}  {:>8.2} {:>8.2}  {:>8.2}  {frames:>7}  {:>8.2} {:>8.2}  {:>8.2}",
        median(stopped.clone()),
        largest(&stopped),
        median(captured),
        median(cold),
        median(warm),
        median(dumped),
    );
}

/// What an address costs that was resolved before: leak samples hand over thousands of them.
fn measure_known_addresses(program: &Program) {
    let target = program.start(&["4", "blocked"]);
    let snapshot = capture(target.pid(), &CaptureOptions::default()).expect("capture");
    let mut symbolizer = Symbolizer::default();
    let stacks = symbolizer.stacks(&snapshot);
    let addresses: Vec<_> = stacks
        .iter()
        .flat_map(|stack| &stack.frames)
        .map(|frame| CodeAddress::Return(frame.address))
        .collect();
    symbolizer.resolve(&snapshot.map, &addresses);
    let calls = 10_000;
    let began = Instant::now();
    let mut frames = 0;
    for index in 0..calls {
        frames += symbolizer.resolve(&snapshot.map, &addresses[index % addresses.len()..][..1]).len();
    }
    let one = began.elapsed() / calls as u32;
    println!("\n{calls} known addresses, one call each: {one:?} per call, {frames} frames");
}

fn main() {
    let program = Program::c("crowd.c", &["-O2", "-g"]);
    println!("                     stopped            capture  frames   symbolise          minidump");
    println!("threads  mode          median      max    median             cold     warm    median");
    for mode in ["blocked", "spin"] {
        for threads in [1, 16, 64, 256] {
            measure(&program, threads, mode);
        }
    }
    measure_known_addresses(&program);
}
