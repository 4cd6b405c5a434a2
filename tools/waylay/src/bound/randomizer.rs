//! `waylay bound randomizer`: what random suspension guarantees for a bug of depth one.

use serde::Serialize;
use waylay_randomizer::bound::{Assumption, Bound, Parameters};

use super::at_least;
use crate::args::RandomizerNumbers;
use crate::output::{CLEAN, Failed, print_json};

/// What is printed.
#[derive(Serialize)]
struct Answer {
    strategy: &'static str,
    threads: u32,
    min_test_ns: u64,
    max_period_ns: u64,
    max_suspend_ns: u64,
    depth: u32,
    /// Probability that one iteration shows the bug.
    per_run: f64,
    /// The same after the planned iterations.
    iterations: Option<u64>,
    after_iterations: Option<f64>,
    /// Iterations for the wanted confidence.
    confidence: f64,
    iterations_needed: u64,
    /// The bound for other numbers of threads.
    by_threads: Vec<(u32, f64)>,
    /// What must hold for all this to hold.
    assumptions: Vec<String>,
}

pub(super) fn bound(numbers: &RandomizerNumbers, json: bool) -> Result<u8, Failed> {
    let of = |threads: u32| {
        Bound::new(&Parameters {
            threads,
            min_test: numbers.min_test,
            max_period: numbers.max_period,
            max_suspend: numbers.max_suspend,
        })
        .map_err(|error| Failed::Usage(error.to_string()))
    };
    let one = of(numbers.threads)?;
    let iterations_needed = one
        .runs_for(numbers.confidence)
        .ok_or_else(|| Failed::Usage("the confidence must lie between 0 and 1".to_owned()))?;
    let mut by_threads = Vec::new();
    for threads in [2, 4, 8, 16] {
        by_threads.push((threads, of(threads)?.per_run()));
    }
    let nanoseconds = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let answer = Answer {
        strategy: "randomizer",
        threads: numbers.threads,
        min_test_ns: nanoseconds(numbers.min_test),
        max_period_ns: nanoseconds(numbers.max_period),
        max_suspend_ns: nanoseconds(numbers.max_suspend),
        depth: 1,
        per_run: one.per_run(),
        iterations: numbers.iterations,
        after_iterations: numbers.iterations.map(|iterations| one.after(iterations)),
        confidence: numbers.confidence,
        iterations_needed,
        by_threads,
        assumptions: Assumption::ALL.iter().map(Assumption::to_string).collect(),
    };
    if json {
        print_json(&answer)?;
    } else {
        print_table(numbers, &answer);
    }
    Ok(CLEAN)
}

fn print_table(numbers: &RandomizerNumbers, answer: &Answer) {
    let row = |label: String, value: String| println!("{label:<24} {value}");
    row("strategy".into(), "randomizer: one thread at a time, suspended from outside".into());
    row("threads".into(), answer.threads.to_string());
    row("shortest iteration".into(), format!("{:?}", numbers.min_test));
    row("longest rest".into(), format!("{:?}", numbers.max_period));
    row("longest suspension".into(), format!("{:?}", numbers.max_suspend));
    row("depth of the bug".into(), answer.depth.to_string());
    let chance = |per_run: f64| format!("more than {per_run:.6e} (1 in {:.0})", 1.0 / per_run);
    row("found in one iteration".into(), chance(answer.per_run));
    row(format!("iterations for {} %", answer.confidence * 100.0), answer.iterations_needed.to_string());
    if let (Some(iterations), Some(after)) = (answer.iterations, answer.after_iterations) {
        row(format!("found in {iterations}"), at_least(after));
    }
    println!("");
    for (threads, per_run) in &answer.by_threads {
        row(format!("with {threads} threads"), chance(*per_run));
    }
    println!("\nif");
    for assumption in &answer.assumptions {
        println!("  {assumption}");
    }
}
