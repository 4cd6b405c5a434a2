//! `waylay bound`: what a strategy guarantees, as numbers.

mod randomizer;

use serde::Serialize;
use waylay_schedule::bound::{self, Chance};

use crate::args::{BoundNumbers, BoundOptions, BoundStrategy};
use crate::output::{CLEAN, Failed, print_json};

/// What is printed.
#[derive(Serialize)]
struct Answer {
    strategy: &'static str,
    threads: u64,
    steps: u64,
    depth: u32,
    /// Probability of finding a bug of that depth in one run.
    per_run: f64,
    /// The same after the planned runs.
    runs: Option<u64>,
    after_runs: Option<f64>,
    /// Runs for the wanted confidence.
    confidence: f64,
    runs_needed: f64,
    /// Largest depth that the planned runs find with that confidence.
    largest_depth: Option<u32>,
    /// For stride: the ratio of length to stride that the planned runs allow.
    ratio: Option<f64>,
}

pub(crate) fn bound(options: &BoundOptions, json: bool) -> Result<u8, Failed> {
    let (name, numbers) = match &options.strategy {
        BoundStrategy::Pct(numbers) => ("pct", numbers),
        BoundStrategy::Stride(numbers) => ("stride", numbers),
        BoundStrategy::Rpro(numbers) => ("rpro", numbers),
        BoundStrategy::Randomizer(numbers) => return randomizer::bound(numbers, json),
    };
    check(numbers)?;
    let planned = numbers.runs.map(|runs| runs as f64);
    // Without planned runs, as many as the asked depth needs with plain PCT decide the stride's ratio.
    let ratio = planned.map(|runs| bound::stride::ratio_for(numbers.confidence, runs, numbers.depth));
    let chance = |depth: u32| -> Chance {
        match options.strategy {
            BoundStrategy::Pct(_) => bound::pct(numbers.threads, numbers.steps, depth),
            BoundStrategy::Rpro(_) => bound::rpro(numbers.threads, numbers.steps, depth, numbers.radius),
            BoundStrategy::Stride(_) | BoundStrategy::Randomizer(_) => {
                bound::stride::per_run(ratio.unwrap_or(DEFAULT_RATIO), depth)
            }
        }
    };
    let one = chance(numbers.depth);
    let answer = Answer {
        strategy: name,
        threads: numbers.threads,
        steps: numbers.steps,
        depth: numbers.depth,
        per_run: one.value(),
        runs: numbers.runs,
        after_runs: planned.map(|runs| one.within(runs)),
        confidence: numbers.confidence,
        runs_needed: one.runs_for(numbers.confidence),
        largest_depth: planned.map(|runs| bound::largest_depth(numbers.confidence, runs, chance)),
        ratio: (name == "stride").then_some(ratio.unwrap_or(DEFAULT_RATIO)),
    };
    if json {
        print_json(&answer)?;
    } else {
        print_table(&answer);
    }
    Ok(CLEAN)
}

/// Ratio of a thread's length to its largest stride when no number of runs is planned: 9,990 runs at 95 % allow it.
const DEFAULT_RATIO: f64 = 6.6;

fn check(numbers: &BoundNumbers) -> Result<(), Failed> {
    if numbers.threads == 0 || numbers.steps == 0 || numbers.depth == 0 || numbers.radius == 0 {
        return Err(Failed::Usage("threads, steps, depth and radius must be at least 1".to_owned()));
    }
    if !(numbers.confidence > 0.0 && numbers.confidence < 1.0) {
        return Err(Failed::Usage("the confidence must lie between 0 and 1".to_owned()));
    }
    if numbers.runs == Some(0) {
        return Err(Failed::Usage("plan at least one run".to_owned()));
    }
    Ok(())
}

fn print_table(answer: &Answer) {
    let row = |label: String, value: String| println!("{label:<24} {value}");
    let percent = format!("{} %", answer.confidence * 100.0);
    row("strategy".into(), answer.strategy.into());
    row("threads, steps".into(), format!("{}, {}", answer.threads, answer.steps));
    row("depth of the bug".into(), answer.depth.to_string());
    if let Some(ratio) = answer.ratio {
        row("length / stride".into(), format!("{ratio:.3}"));
    }
    let per_run = answer.per_run;
    row("found in one run".into(), format!("at least {per_run:.6e} (1 in {:.0})", 1.0 / per_run));
    row(format!("runs for {percent}"), format!("{:.0}", answer.runs_needed));
    if let (Some(runs), Some(after), Some(depth)) = (answer.runs, answer.after_runs, answer.largest_depth) {
        row(format!("found in {runs} runs"), at_least(after));
        row("largest depth".into(), format!("{depth} (found with {percent} in {runs} runs)"));
    }
}

/// A probability that is not rounded up to certainty.
pub(super) fn at_least(probability: f64) -> String {
    if probability > 0.999_999 {
        "more than 99.9999 %".to_owned()
    } else {
        format!("at least {:.4} %", probability * 100.0)
    }
}
