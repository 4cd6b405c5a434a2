//! What many runs together promise about bugs that were not seen, for reports.

use serde::{Deserialize, Serialize};

use crate::bound::Chance;
use crate::guarantee::Guarantee;
use crate::ledger::{LeftOut, leaving_out};
use crate::run::RunParameters;

/// What the runs promise about bugs that were not seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Promise {
    /// For bugs of this depth.
    pub depth: u32,
    /// The least probability of finding one in a run that counts.
    pub per_run: f64,
    /// The least probability that all runs together would have found one.
    pub after_runs: f64,
    /// Runs that count: they aimed at this depth, reached the end of the longest run, and had no practical parts.
    pub runs: u64,
    /// Those of them that failed, where whoever made them knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures: Option<u64>,
    /// What else must hold of the bug.
    pub conditions: Vec<String>,
    /// What was not controlled: bugs that need a switch there are not meant.
    #[serde(default)]
    pub leaves_out: Vec<LeftOut>,
}

/// How probable is well promised.
const WELL: f64 = 0.95;

/// Runs by the depth that they promise something for.
///
/// A run whose change points could not reach the end of the longest run says nothing about bugs that lie there. So those
/// that were made before k last grew are forgotten.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Aimed {
    /// k of the runs that are counted.
    pub reach: u64,
    /// How many promise something for bugs of each depth, from 1; those of depth 0 promise something about orders of events.
    pub runs: Vec<u64>,
    /// How many of each of those failed; empty where that is not counted.
    pub failures: Vec<u64>,
}

impl Aimed {
    /// Takes one run in.
    pub fn take(&mut self, parameters: &RunParameters) {
        let Some(depth) = parameters.promised_depth() else { return };
        let depth = depth as usize;
        let mut one = Aimed { reach: 0, runs: vec![0; depth + 1], failures: Vec::new() };
        one.runs[depth] = 1;
        if depth > 0 {
            one.reach = parameters.steps;
        }
        self.add(&one);
    }

    /// The run that was taken in last failed, or did not. What failed in runs that do not count says nothing of a promise.
    pub fn judge(&mut self, parameters: &RunParameters, failed: bool) {
        let Some(depth) = parameters.promised_depth().map(|depth| depth as usize) else { return };
        if depth == 0 || parameters.steps == self.reach {
            self.failures.resize(self.failures.len().max(depth + 1), 0);
            self.failures[depth] += u64::from(failed);
        }
    }

    /// Takes in the runs of another process.
    pub fn add(&mut self, other: &Aimed) {
        if other.reach > self.reach {
            self.forget();
            self.reach = other.reach;
        }
        if self.runs.len() < other.runs.len() {
            self.runs.resize(other.runs.len(), 0);
        }
        for (depth, (sum, &more)) in self.runs.iter_mut().zip(&other.runs).enumerate() {
            if depth == 0 || other.reach == self.reach {
                *sum += more;
            }
        }
        if self.failures.len() < other.failures.len() {
            self.failures.resize(other.failures.len(), 0);
        }
        for (depth, (sum, &more)) in self.failures.iter_mut().zip(&other.failures).enumerate() {
            if depth == 0 || other.reach == self.reach {
                *sum += more;
            }
        }
    }

    /// A run had so many steps that may count in another schedule: those whose k is smaller promise nothing.
    pub fn outgrow(&mut self, steps: u64) {
        if steps > self.reach {
            self.forget();
            self.reach = steps;
        }
    }

    /// The runs so far promise nothing any more.
    pub fn forget(&mut self) {
        self.runs.clear();
        self.failures.clear();
    }
}

/// The promises of runs by depth.
pub fn promises(parameters: &RunParameters, threads: u32, aimed: &Aimed) -> Vec<Promise> {
    let mut promises = Vec::new();
    for (index, &runs) in aimed.runs.iter().enumerate().filter(|&(_, &runs)| runs > 0) {
        let given = RunParameters {
            threads,
            steps: aimed.reach,
            depth: index as u32,
            bare: true,
            profiling: false,
            ..parameters.clone()
        };
        let Some(Guarantee { per_run, depth, conditions }) = Guarantee::of(&given) else { continue };
        let after_runs = Chance::within(per_run, runs as f64);
        let conditions = conditions.into_iter().map(str::to_owned).collect();
        let (per_run, leaves_out) = (per_run.value(), Vec::new());
        let counted = |failures: &[u64]| failures.get(index).copied().unwrap_or(0);
        let failures = (!aimed.failures.is_empty()).then(|| counted(&aimed.failures));
        promises.push(Promise { depth, per_run, after_runs, runs, failures, conditions, leaves_out });
    }
    promises
}

/// The promise to be named first: for the greatest depth that is promised well, or else the first.
pub fn headline(promises: &[Promise]) -> Option<Promise> {
    promises.iter().rev().find(|promise| promise.after_runs >= WELL).or(promises.first()).cloned()
}

impl std::fmt::Display for Promise {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "a bug of depth {} would have been found with probability {} at least ({} in each of {} that count)",
            self.depth,
            rounded(self.after_runs),
            rounded(self.per_run),
            if self.runs == 1 { "one run".to_owned() } else { format!("{} runs", grouped(self.runs)) }
        )?;
        for (place, condition) in self.conditions.iter().enumerate() {
            write!(f, "{} {condition}", if place == 0 { ", provided that" } else { " and that" })?;
        }
        f.write_str(&leaving_out(&self.leaves_out))
    }
}

/// With a comma before each three digits.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let groups: Vec<&str> =
        (0..digits.len()).rev().step_by(3).map(|end| &digits[end.saturating_sub(2)..=end]).collect();
    groups.into_iter().rev().collect::<Vec<_>>().join(",")
}

fn rounded(probability: f64) -> String {
    match probability {
        p if p > 0.999_999 => "0.999999".to_owned(),
        p if p < 0.001 => format!("{p:.1e}"),
        // Down, because it is a least probability; a little more than one ulp up, because 0.05 is no binary number.
        p => format!("{:.4}", ((p + 1e-12) * 1e4).floor() / 1e4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promises_are_made_per_depth_and_the_deepest_good_one_is_named() {
        let parameters = RunParameters::of("pct:depth=auto");
        let aimed = Aimed { reach: 10, runs: vec![7, 100, 1000, 10], ..Aimed::default() };
        let promises = promises(&parameters, 2, &aimed);
        let depths: Vec<u32> = promises.iter().map(|promise| promise.depth).collect();
        assert_eq!(depths, [1, 2, 3]);
        assert!((promises[1].per_run - 0.05).abs() < 1e-12);
        let best = headline(&promises).unwrap();
        assert_eq!(best.depth, 2);
        assert_eq!(
            best.to_string(),
            "a bug of depth 2 would have been found with probability 0.999999 at least (0.0500 in each of 1,000 runs that count)"
        );
        assert!(super::promises(&parameters, 1, &aimed).is_empty(), "one thread has one schedule");
        let radius = super::promises(&RunParameters::of("rpro"), 2, &aimed).pop().unwrap().to_string();
        assert!(
            radius.ends_with(", provided that its change points lie within the radius, the first first"),
            "{radius}"
        );
        assert_eq!([0.99997, 0.0083333, 2e-4].map(rounded), ["0.9999", "0.0083", "2.0e-4"]);
        assert!(super::promises(&RunParameters::of("random"), 2, &aimed).is_empty());
    }

    #[test]
    fn runs_count_that_are_bare_and_reach_the_end() {
        let run = |depth, steps, bare| RunParameters { depth, steps, bare, ..RunParameters::of("pct") };
        let mut aimed = Aimed::default();
        for (depth, steps, bare) in [(1, 0, false), (2, 50, true), (2, 50, false), (3, 50, true)] {
            aimed.take(&run(depth, steps, bare));
        }
        assert_eq!(aimed, Aimed { reach: 50, runs: vec![0, 0, 1, 1], ..Aimed::default() });
        aimed.take(&run(1, 60, true));
        assert_eq!(
            aimed,
            Aimed { reach: 60, runs: vec![0, 1], ..Aimed::default() },
            "those before reached 50 steps only"
        );
        aimed.add(&Aimed { reach: 50, runs: vec![1, 9], ..Aimed::default() });
        assert_eq!(aimed, Aimed { reach: 60, runs: vec![1, 1], ..Aimed::default() });
        aimed.add(&Aimed { reach: 60, runs: vec![0, 2, 2], ..Aimed::default() });
        assert_eq!(aimed, Aimed { reach: 60, runs: vec![1, 3, 2], ..Aimed::default() });
    }

    #[test]
    fn failures_are_those_of_the_runs_that_count() {
        let run = |depth, steps, bare| RunParameters { depth, steps, bare, ..RunParameters::of("pct") };
        let mut aimed = Aimed::default();
        for (depth, steps, bare, failed) in [
            (2, 50, true, true),
            (2, 50, false, true),
            (2, 60, true, true),
            (2, 60, true, false),
            (2, 50, true, true),
            (1, 60, true, true),
        ] {
            aimed.take(&run(depth, steps, bare));
            aimed.judge(&run(depth, steps, bare), failed);
        }
        // One of depth 2 was forgotten with its k, one was not bare, one came late with a k that is too small.
        assert_eq!((&aimed.runs[..], &aimed.failures[..]), (&[0, 1, 2][..], &[0, 1, 1][..]));
        assert_eq!(promises(&RunParameters::of("pct"), 2, &aimed)[1].failures, Some(1));
    }

    #[test]
    fn strides_promise_something_once_they_were_measured() {
        let profiling = RunParameters { profiling: true, ..RunParameters::of("stride") };
        let measured = RunParameters { ratio_bits: Some(3.0_f64.to_bits()), ..RunParameters::of("stride") };
        let mut aimed = Aimed::default();
        (0..10).for_each(|_| aimed.take(&profiling));
        assert!(super::promises(&RunParameters::of("stride"), 2, &aimed).is_empty());
        (0..7).for_each(|_| aimed.take(&measured));
        assert_eq!(super::promises(&RunParameters::of("stride"), 2, &aimed)[0].runs, 7);
    }
}
