//! `waylay bound`: what a strategy guarantees, as numbers.

mod randomizer;

use serde::Serialize;
use waylay_driver::report::count;
use waylay_schedule::bound::{self, Chance};
use waylay_schedule::stride::StrideLimit;

use crate::args::{BoundNumbers, BoundOptions, BoundStrategy};
use crate::output::{CLEAN, Failed, print_json};

/// What is printed.
#[derive(Serialize)]
struct Answer {
    strategy: &'static str,
    threads: u64,
    steps: u64,
    depth: u32,
    /// Probability of finding a bug of that depth in one run, and its logarithm for when it is too small for a number.
    per_run: f64,
    per_run_log10: f64,
    /// The same after the planned runs.
    runs: Option<u64>,
    after_runs: Option<f64>,
    /// Runs for the wanted confidence; none when there are more than a number can say.
    confidence: f64,
    runs_needed: Option<f64>,
    /// Largest depth that the planned runs find with that confidence.
    largest_depth: Option<u32>,
    /// For rpro: the steps within which the change points lie.
    radius: Option<u64>,
    /// For stride: the ratio of a thread's length to its greatest stride, and that stride for a thread with its share
    /// of the steps.
    ratio: Option<f64>,
    greatest_stride: Option<u64>,
}

pub(crate) fn bound(options: &BoundOptions, json: bool) -> Result<u8, Failed> {
    let (strategy, numbers) = match &options.strategy {
        BoundStrategy::Pct(numbers) => ("pct", numbers),
        BoundStrategy::Stride(stride) => ("stride", &stride.numbers),
        BoundStrategy::Rpro(rpro) => ("rpro", &rpro.numbers),
        BoundStrategy::Randomizer(numbers) => return randomizer::bound(numbers, json),
    };
    check(numbers)?;
    let planned = numbers.runs.map(|runs| runs as f64);
    let radius = match &options.strategy {
        BoundStrategy::Rpro(rpro) if rpro.radius == 0 => {
            return Err(Failed::Usage("the radius must be at least 1".to_owned()));
        }
        BoundStrategy::Rpro(rpro) => Some(rpro.radius),
        _ => None,
    };
    let ratio = match &options.strategy {
        BoundStrategy::Stride(stride) => Some(ratio(stride.ratio, numbers)?),
        _ => None,
    };
    let chance = |depth: u32| -> Chance {
        match (ratio, radius) {
            (Some(ratio), _) => bound::stride::per_run(ratio, depth),
            (_, Some(radius)) => bound::rpro(numbers.threads, numbers.steps, depth, radius),
            _ => bound::pct(numbers.threads, numbers.steps, depth),
        }
    };
    let one = chance(numbers.depth);
    let length = numbers.steps.div_ceil(numbers.threads) as f64;
    let answer = Answer {
        strategy,
        threads: numbers.threads,
        steps: numbers.steps,
        depth: numbers.depth,
        per_run: one.value(),
        per_run_log10: one.ln() / std::f64::consts::LN_10,
        runs: numbers.runs,
        after_runs: planned.map(|runs| one.within(runs)),
        confidence: numbers.confidence,
        runs_needed: Some(one.runs_for(numbers.confidence)).filter(|runs| runs.is_finite()),
        largest_depth: planned.map(|runs| bound::largest_depth(numbers.confidence, runs, chance)),
        radius,
        ratio,
        greatest_stride: ratio.map(|ratio| (length / ratio).ceil().max(1.0) as u64),
    };
    if json {
        print_json(&answer)?;
    } else {
        print_table(&answer);
    }
    Ok(CLEAN)
}

/// The ratio that was given, that the planned runs allow, or that the strategy has when nothing is said.
fn ratio(given: Option<f64>, numbers: &BoundNumbers) -> Result<f64, Failed> {
    let computed = match numbers.runs {
        Some(runs) => bound::stride::ratio_for(numbers.confidence, runs as f64, numbers.depth),
        None => StrideLimit::default().ratio().unwrap_or(1.0),
    };
    let ratio = given.unwrap_or(computed);
    if ratio.is_finite() && ratio > 0.0 {
        return Ok(ratio);
    }
    Err(Failed::Usage(match given {
        Some(_) => "the ratio must be greater than 0".to_owned(),
        None => "no stride reaches that confidence in so few runs: plan more, or want less".to_owned(),
    }))
}

fn check(numbers: &BoundNumbers) -> Result<(), Failed> {
    if numbers.threads == 0 || numbers.steps == 0 || numbers.depth == 0 {
        return Err(Failed::Usage("threads, steps and depth must be at least 1".to_owned()));
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
    row("threads, steps".into(), format!("{}, {}", count(answer.threads), count(answer.steps)));
    row("depth of the bug".into(), answer.depth.to_string());
    if let Some(radius) = answer.radius {
        row("radius".into(), count(radius));
    }
    if let (Some(ratio), Some(stride)) = (answer.ratio, answer.greatest_stride) {
        row("length / stride".into(), format!("{ratio:.3} (strides of up to {})", count(stride)));
    }
    row("found in one run".into(), format!("at least {}", one_in(answer)));
    let needed = answer.runs_needed.map_or_else(|| "beyond counting".to_owned(), whole);
    row(format!("runs for {percent}"), needed);
    if let (Some(runs), Some(after), Some(depth)) = (answer.runs, answer.after_runs, answer.largest_depth) {
        row(format!("found in {} runs", count(runs)), at_least(after));
        let depth = match depth {
            0 => format!("none (not even depth 1 is found with {percent})"),
            depth => format!("{depth} (found with {percent} in {} runs)", count(runs)),
        };
        row("largest depth".into(), depth);
    }
}

/// A whole number of any size.
fn whole(number: f64) -> String {
    if number < 1e15 { count(number as u64) } else { format!("{number:.2e}") }
}

/// A probability as one in so many.
fn one_in(answer: &Answer) -> String {
    if answer.per_run > f64::MIN_POSITIVE {
        format!("{:.6e} (1 in {})", answer.per_run, whole((1.0 / answer.per_run).round()))
    } else {
        format!("1 in 10^{:.0}", -answer.per_run_log10)
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
