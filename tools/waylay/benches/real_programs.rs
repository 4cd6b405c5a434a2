//! Three real programs under every strategy, 1,000 schedules each: `cargo bench -p waylay --bench real_programs`.

#[path = "../tests/support/mod.rs"]
mod support;

use serde_json::Value;
use support::real::{PROGRAMS, STRATEGIES, workplace};

const RUNS: u64 = 1000;

fn main() {
    let place = workplace();
    println!(
        "{:<22} {:>6} {:>8} {:>8} {:>9} {:>8} {:>7}",
        "", "runs", "failures", "threads", "steps", "partly", "rate"
    );
    let mut wrong = 0;
    for program in PROGRAMS.iter().filter(|program| program.is_here()) {
        for strategy in STRATEGIES {
            let summary = program.explore(&place, strategy, RUNS);
            let number = |name: &str| summary[name].as_u64().unwrap_or(u64::MAX);
            wrong += u64::from(number("failures") != 0 || number("runs") != RUNS);
            println!(
                "{:<22} {:>6} {:>8} {:>8} {:>9} {:>8} {:>5.0}/s",
                format!("{} ({}) {strategy}", program.name, program.language),
                number("runs"),
                number("failures"),
                number("threads"),
                number("steps"),
                number("partly_controlled"),
                summary.get("schedules_per_second").and_then(Value::as_f64).unwrap_or(0.0)
            );
        }
    }
    assert_eq!(wrong, 0, "strategies under which a program did something else");
}
