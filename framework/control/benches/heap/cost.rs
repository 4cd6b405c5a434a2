//! The table: load × variant, CPU nanoseconds per operation and the difference from plain.

use crate::load;
use waylay_leaks::region::{Sampling, SharedRegion};

#[derive(Clone, Copy)]
enum Variant {
    Plain,
    Inert,
    Sampled(u64),
}

const VARIANTS: [(&str, Variant); 4] = [
    ("plain", Variant::Plain),
    ("preloaded, inert", Variant::Inert),
    ("sampling 512 KiB", Variant::Sampled(512 * 1024)),
    ("sampling 64 KiB", Variant::Sampled(64 * 1024)),
];

/// Name, kind, threads, operations per thread: some tenths of a second each.
const LOADS: [(&str, &str, usize, u64); 3] = [
    ("malloc only, 1 thread", "malloc", 1, 20_000_000),
    ("app-like, 1 thread", "app", 1, 5_000_000),
    ("app-like, 2 threads", "app", 2, 2_500_000),
];

/// What sampling at the default distance may cost on an app-like load.
const MOST: f64 = 5.0;
/// The row that the limit is about: the default sampling distance.
const LIMITED: usize = 2;

/// Prints the table and whether the limit holds.
pub(crate) fn table(turns: usize) -> bool {
    println!("CPU ns per operation, best of {turns} interleaved turns (difference from plain)\n");
    println!("{:24}{}", "", LOADS.map(|load| format!("{:>26}", load.0)).concat());
    let mut best = [[f64::INFINITY; LOADS.len()]; VARIANTS.len()];
    for _ in 0..turns {
        for (column, (_, kind, threads, operations)) in LOADS.into_iter().enumerate() {
            for (row, (_, variant)) in VARIANTS.into_iter().enumerate() {
                let cost = measure(variant, kind, threads, operations);
                best[row][column] = best[row][column].min(cost);
            }
        }
    }
    for ((name, _), row) in VARIANTS.into_iter().zip(&best) {
        let cells = row.iter().zip(&best[0]).map(|(cost, plain)| {
            let difference = (cost / plain - 1.0) * 100.0;
            format!("{:>26}", format!("{cost:.2} ({difference:+.1} %)"))
        });
        println!("{name:24}{}", cells.collect::<String>());
    }
    let of_app = LOADS.iter().enumerate().filter(|(_, (_, kind, ..))| *kind == "app");
    let worst = of_app
        .map(|(column, _)| (best[LIMITED][column] / best[0][column] - 1.0) * 100.0)
        .fold(f64::NEG_INFINITY, f64::max);
    let holds = worst < MOST;
    let verdict = if holds { "holds" } else { "DOES NOT HOLD" };
    println!("\nbelow {MOST:.0} % on app-like loads with default sampling: {worst:+.1} %, {verdict}");
    holds
}

fn measure(variant: Variant, kind: &str, threads: usize, operations: u64) -> f64 {
    let mut command = load::command(kind, threads, operations);
    let region = SharedRegion::create().expect("region");
    match variant {
        Variant::Plain => {}
        Variant::Inert => {
            command.env("LD_PRELOAD", load::library());
        }
        Variant::Sampled(period) => {
            region.attach(&mut command, &load::library(), Sampling { period, seed: None })
        }
    }
    let output = command.output().expect("measured process");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let sampled = matches!(variant, Variant::Sampled(_));
    assert_eq!(region.snapshot().samples > 0, sampled, "sampling is not what it should be");
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number")
}
