//! What a night guarantees about bugs that it did not find, per test, in words and with the formula behind them.
//!
//! Depth is how many orders of two events a bug needs at once. In strict mode every run that aims at depth d or more finds
//! a bug of depth d with at least the probability that the strategy's paper proves, so the runs of all these depths count
//! together: P = 1 − ∏ (1 − p)^runs. Random suspension has a bound for depth 1 alone. The operating system has none.

mod together;

pub use together::together;

use serde::Serialize;
use waylay_schedule::RunParameters;
use waylay_schedule::guarantee::Guarantee as PerRun;

use crate::confidence::SURE;
use crate::model::{Mode, Scenario, StrictNumbers, SuspensionBound, Suspensions, Test};
use crate::numbers::{at_least, count, long_span, plural, small, whole};

/// Depths that are spoken of: most bugs that were studied need one or two orders, hardly any more than three.
pub const DEPTHS: [u32; 3] = [1, 2, 3];

/// What is guaranteed for one test.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TestGuarantee {
    /// The scenario.
    pub scenario: String,
    /// The test.
    pub test: String,
    /// Who decided which thread runs.
    pub mode: Mode,
    /// One sentence for people.
    pub sentence: String,
    /// By depth, from 1.
    pub depths: Vec<DepthGuarantee>,
    /// The formula, with the measured numbers in it.
    pub formula: Vec<String>,
    /// What must hold for all this.
    pub conditions: Vec<String>,
    /// What the settings break of that; then the numbers are no guarantee.
    pub broken: Vec<String>,
}

/// What is guaranteed for bugs of one depth.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DepthGuarantee {
    /// The depth.
    pub depth: u32,
    /// The least probability that such a bug would have been found; none when nothing is guaranteed.
    pub found: Option<f64>,
    /// The least probability in one run that aims at this depth; none when there is none.
    pub per_run: Option<f64>,
    /// Seconds until it is found with 95 %: 0 when that is so already, none when it never will be like this.
    pub seconds_left: Option<f64>,
    /// What to change so that there is a guarantee, when there is none.
    pub advice: Option<String>,
}

impl DepthGuarantee {
    fn none(depth: u32, advice: &str) -> DepthGuarantee {
        DepthGuarantee {
            depth,
            found: None,
            per_run: None,
            seconds_left: None,
            advice: Some(advice.to_owned()),
        }
    }

    /// Whether such a bug would have been found with 95 %.
    pub fn is_sure(&self) -> bool {
        self.found.is_some_and(|found| found >= SURE)
    }

    /// The probability for people.
    pub fn found_text(&self) -> String {
        self.found.map_or_else(|| "no guarantee".to_owned(), at_least)
    }

    /// How long until 95 %, for people.
    pub fn time_text(&self) -> String {
        match (self.found, self.seconds_left, &self.advice) {
            (_, _, Some(advice)) => advice.clone(),
            (Some(_), Some(0.0), _) => "reached".to_owned(),
            (Some(_), Some(seconds), _) => format!("{} more", long_span(seconds)),
            _ => "never at this pace".to_owned(),
        }
    }
}

/// The names of these tests, each once: a test may run in several scenarios.
pub fn names<'a>(tests: &[&'a TestGuarantee]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for test in tests {
        if !names.contains(&test.test.as_str()) {
            names.push(&test.test);
        }
    }
    names
}

/// What is guaranteed for a test of a scenario.
pub fn of(scenario: &Scenario, test: &Test) -> TestGuarantee {
    let mut guarantee = TestGuarantee {
        scenario: scenario.name.clone(),
        test: test.name.clone(),
        mode: scenario.mode,
        sentence: String::new(),
        depths: Vec::new(),
        formula: Vec::new(),
        conditions: Vec::new(),
        broken: Vec::new(),
    };
    match (scenario.mode, &test.strict, &test.bound) {
        (Mode::Strict, Some(strict), _) => of_schedules(&mut guarantee, strict),
        (Mode::Randomized, _, Some(bound)) => {
            of_suspensions(&mut guarantee, scenario, test, bound);
        }
        (Mode::Randomized, _, None) => {
            let why = test.no_bound.as_deref().unwrap_or("no thread was suspended while it ran");
            guarantee.sentence = format!("Nothing is guaranteed: {why}.");
            guarantee.depths = DEPTHS.map(|depth| DepthGuarantee::none(depth, "")).to_vec();
        }
        (Mode::Strict, None, _) => {
            guarantee.sentence = "Nothing is guaranteed: not one schedule was run.".to_owned();
            guarantee.depths = DEPTHS.map(|depth| DepthGuarantee::none(depth, "")).to_vec();
        }
        (Mode::Free, _, _) => {
            guarantee.sentence =
                "Nothing is guaranteed: the operating system chose the order of events, and it prefers the same \
                 orders every time."
                    .to_owned();
            let advice = "modes randomized and strict have one";
            guarantee.depths = DEPTHS.map(|depth| DepthGuarantee::none(depth, advice)).to_vec();
        }
    }
    guarantee
}

/// Every test of a campaign that did something, those with the strongest guarantee first within their scenario.
pub fn of_all(scenarios: &[Scenario]) -> Vec<TestGuarantee> {
    let tests = scenarios.iter().flat_map(|scenario| scenario.tests.iter().map(move |test| (scenario, test)));
    tests.filter(|(_, test)| test.iterations > 0).map(|(scenario, test)| of(scenario, test)).collect()
}

/// −ln(1 − p): what one run adds to being sure.
fn weight(per_run: f64) -> f64 {
    if per_run >= 1.0 { f64::INFINITY } else { -(-per_run).ln_1p() }
}

fn needed() -> f64 {
    weight(SURE)
}

fn of_schedules(guarantee: &mut TestGuarantee, strict: &StrictNumbers) {
    let seconds = if strict.schedules_per_second > 0.0 {
        strict.runs as f64 / strict.schedules_per_second
    } else {
        0.0
    };
    for depth in DEPTHS {
        let helping = || strict.promises.iter().filter(|promise| promise.depth >= depth && promise.runs > 0);
        let sum: f64 = helping().map(|promise| promise.runs as f64 * weight(promise.per_run)).sum();
        let exact = helping().find(|promise| promise.depth == depth).map(|promise| promise.per_run);
        let per_run = exact.or_else(|| per_run_at(strict, depth));
        guarantee.depths.push(if sum > 0.0 {
            let left = needed() - sum;
            DepthGuarantee {
                depth,
                found: Some(-(-sum).exp_m1()),
                per_run: per_run.or_else(|| helping().next().map(|promise| promise.per_run)),
                seconds_left: if left <= 0.0 {
                    Some(0.0)
                } else {
                    Some(left / sum * seconds).filter(|left| left.is_finite() && seconds > 0.0)
                },
                advice: None,
            }
        } else if strict.exhausted {
            DepthGuarantee::none(depth, "every schedule within the bound was run")
        } else {
            let rate = strict.schedules_per_second;
            match per_run.filter(|per_run| *per_run > 0.0 && rate > 0.0) {
                Some(per_run) => {
                    let time = long_span(needed() / weight(per_run) / rate);
                    DepthGuarantee {
                        per_run: Some(per_run),
                        ..DepthGuarantee::none(depth, &format!("{time} with depth = {depth}"))
                    }
                }
                None => DepthGuarantee::none(depth, "this strategy promises nothing by depth: use pct"),
            }
        });
    }
    let mut conditions: Vec<String> =
        strict.promises.iter().flat_map(|promise| promise.conditions.iter().cloned()).collect();
    conditions.sort();
    conditions.dedup();
    guarantee.conditions = conditions;
    if strict.partly_controlled > 0 {
        guarantee.broken.push(format!(
            "{} of {} were only partly controlled: something outside the schedule took part",
            plural(strict.partly_controlled, "schedule"),
            count(strict.runs)
        ));
    }
    if strict.limit_reached > 0 {
        guarantee.broken.push(format!(
            "{} of {} reached the limit of steps or of time and were not judged",
            plural(strict.limit_reached, "schedule"),
            count(strict.runs)
        ));
    }
    guarantee.formula = schedule_formula(strict, &guarantee.depths);
    let by = format!("{} with {}", plural(strict.runs, "schedule"), strategy_in_words(&strict.strategy));
    let sentence = sentence(&guarantee.depths, &by, strict.exhausted);
    guarantee.sentence = match strict.leaves_out.as_str() {
        "" => sentence,
        left_out => format!("{}{left_out}.", sentence.trim_end_matches('.')),
    };
}

/// A strategy as people say it: a portfolio by the families in it, without their settings.
fn strategy_in_words(strategy: &str) -> String {
    let Some(parts) = strategy.strip_prefix("portfolio:") else { return strategy.to_owned() };
    let families: Vec<&str> = parts.split('+').filter_map(|part| part.split(':').next()).collect();
    match families.split_last() {
        Some((last, before)) if !before.is_empty() => {
            format!("a portfolio of {} and {last}", before.join(", "))
        }
        _ => strategy.to_owned(),
    }
}

/// What one run that aims at a depth promises, whether any did or not.
fn per_run_at(strict: &StrictNumbers, depth: u32) -> Option<f64> {
    let given = RunParameters {
        threads: strict.threads,
        steps: strict.steps,
        depth,
        profiling: false,
        ..RunParameters::of(strict.strategy.clone())
    };
    PerRun::of(&given).filter(|promise| promise.depth == depth).map(|promise| promise.per_run.value())
}

fn schedule_formula(strict: &StrictNumbers, depths: &[DepthGuarantee]) -> Vec<String> {
    let family = strict.strategy.split(':').next().unwrap_or_default();
    let mut lines = Vec::new();
    let measured = format!(
        "measured: n = {} threads at most, k = {} steps at most, {} at {} per second",
        strict.threads,
        count(strict.steps),
        plural(strict.runs, "schedule"),
        count(strict.schedules_per_second as u64)
    );
    match family {
        "pct" => lines.push("per run: p(d) ≥ 1 / (n · k^(d−1))  (Burckhardt et al., ASPLOS 2010)".to_owned()),
        "rpro" => lines.push(
            "per run: p(d) ≥ 1 / (n · k · r^(d−2)), all change points within a radius of r steps".to_owned(),
        ),
        "stride" => {
            lines.push("per run: p ≥ the least likely order for this ratio of length to stride".to_owned());
        }
        _ => {}
    }
    lines.push(measured);
    for depth in depths.iter().filter_map(|depth| Some((depth, depth.per_run?))) {
        let (depth, per_run) = depth;
        let aimed: u64 = strict
            .promises
            .iter()
            .filter(|promise| promise.depth >= depth.depth)
            .map(|promise| promise.runs)
            .sum();
        lines.push(match depth.found {
            Some(found) => format!(
                "depth {}: p ≥ {}; 1 − ∏ (1 − p)^runs over the {} that aimed at depth {} or more = {}",
                depth.depth,
                small(per_run),
                plural(aimed, "run"),
                depth.depth,
                at_least(found)
            ),
            None => format!(
                "depth {}: p ≥ {}; 95 % after ln 0.05 / ln (1 − p) = {} runs",
                depth.depth,
                small(per_run),
                whole(needed() / weight(per_run))
            ),
        });
    }
    lines
}

fn of_suspensions(guarantee: &mut TestGuarantee, scenario: &Scenario, test: &Test, bound: &SuspensionBound) {
    let sum = test.iterations as f64 * weight(bound.per_iteration);
    let left = needed() - sum;
    let seconds_left = if left <= 0.0 { 0.0 } else { left / sum * scenario.seconds };
    guarantee.depths.push(DepthGuarantee {
        depth: 1,
        found: Some(-(-sum).exp_m1()),
        per_run: Some(bound.per_iteration),
        seconds_left: Some(seconds_left).filter(|left| left.is_finite()),
        advice: None,
    });
    let advice = "mode strict has one";
    guarantee.depths.extend(DEPTHS[1..].iter().map(|depth| DepthGuarantee::none(*depth, advice)));
    guarantee.broken = bound.broken_assumptions.clone();
    guarantee.conditions = [
        "the bug has depth one: a single order of two instructions shows it",
        "one thread is suspended at a time, period and suspension are uniformly distributed",
        "the shortest suspension is longer than the other thread needs to reach its instruction",
        "the instruction is equally likely anywhere in the iteration (an average over bugs)",
        "iterations are independent of each other",
    ]
    .map(str::to_owned)
    .to_vec();
    guarantee.formula = suspension_formula(scenario.suspensions.as_ref(), test, bound);
    guarantee.sentence = sentence(
        &guarantee.depths,
        &format!("{} under random suspension", plural(test.iterations, "iteration")),
        false,
    );
}

fn suspension_formula(
    suspensions: Option<&Suspensions>,
    test: &Test,
    bound: &SuspensionBound,
) -> Vec<String> {
    let time = |nanos: u64| crate::numbers::span(std::time::Duration::from_nanos(nanos));
    let limit = |nanos: Option<u64>| nanos.map_or_else(|| "unknown".to_owned(), time);
    let known =
        suspensions.map(|suspensions| (suspensions.longest_rest_ns, suspensions.longest_suspension_ns));
    let (rest, hold) = known.unwrap_or_default();
    vec![
        "per iteration: p > 1/(2N) · MINTP / (MAXRP + MAXSD)".to_owned(),
        format!(
            "measured: N = {} threads to choose from at most, MINTP = {} shortest iteration; set: MAXRP = {} longest \
             rest, MAXSD = {} longest suspension",
            bound.threads,
            time(bound.min_test_ns),
            limit(rest),
            limit(hold)
        ),
        format!(
            "p > {}; 1 − (1 − p)^{} = {}",
            small(bound.per_iteration),
            count(test.iterations),
            at_least(-(-(test.iterations as f64) * weight(bound.per_iteration)).exp_m1())
        ),
    ]
}

/// What a bug of that depth is.
pub fn meaning(depth: u32) -> &'static str {
    match depth {
        1 => "one event has to come before another that it usually comes after",
        2 => "two such orders have to come about in one run",
        _ => "three such orders have to come about in one run",
    }
}

fn sentence(depths: &[DepthGuarantee], by: &str, exhausted: bool) -> String {
    if exhausted {
        return format!("{by} were all schedules within the bound: a bug within it would have been found.");
    }
    match depths.iter().rev().find(|depth| depth.is_sure()) {
        Some(depth) => format!(
            "{by}: a bug of depth {} would have been found with a probability of {}.",
            if depth.depth == 1 { "1".to_owned() } else { format!("{} or less", depth.depth) },
            at_least(depth.found.unwrap_or_default())
        ),
        None => match depths.first().and_then(|depth| Some((depth, depth.found?))) {
            Some((depth, found)) => format!(
                "{by}: even a bug of depth 1 would have been found with a probability of {} only; 95 % takes {}.",
                at_least(found),
                depth.seconds_left.map_or_else(
                    || "longer than can be said".to_owned(),
                    |left| format!("{} more", long_span(left))
                )
            ),
            None => format!("{by}: this strategy promises nothing by depth."),
        },
    }
}

#[cfg(test)]
mod tests;
