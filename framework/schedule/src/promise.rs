//! What many runs together promise about bugs that were not seen, for reports.

use serde::{Deserialize, Serialize};

use crate::bound::Chance;
use crate::guarantee::Guarantee;
use crate::run::RunParameters;

/// What the runs promise about bugs that were not seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Promise {
    /// For bugs of this depth.
    pub depth: u32,
    /// The least probability of finding one in a run that aims at this depth.
    pub per_run: f64,
    /// The least probability that all runs together would have found one.
    pub after_runs: f64,
    /// Runs that aimed at this depth.
    pub runs: u64,
    /// What else must hold of the bug.
    pub conditions: Vec<String>,
}

/// How probable is well promised.
const WELL: f64 = 0.95;

/// The promises of runs by depth: `aimed` says how many runs aimed at each depth, from 1.
pub fn promises(parameters: &RunParameters, threads: u32, steps: u64, aimed: &[u64]) -> Vec<Promise> {
    let mut promises = Vec::new();
    for (index, &runs) in aimed.iter().enumerate().filter(|&(_, &runs)| runs > 0) {
        let given =
            RunParameters { threads, steps, depth: index as u32, profiling: false, ..parameters.clone() };
        let Some(Guarantee { per_run, depth, conditions }) = Guarantee::of(&given) else { continue };
        let after_runs = Chance::within(per_run, runs as f64);
        let conditions = conditions.into_iter().map(str::to_owned).collect();
        promises.push(Promise { depth, per_run: per_run.value(), after_runs, runs, conditions });
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
            "a bug of depth {} would have been found with probability {} at least ({} per run)",
            self.depth,
            rounded(self.after_runs),
            rounded(self.per_run)
        )
    }
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
        let promises = promises(&parameters, 2, 10, &[0, 100, 1000, 10]);
        let depths: Vec<u32> = promises.iter().map(|promise| promise.depth).collect();
        assert_eq!(depths, [1, 2, 3]);
        assert!((promises[1].per_run - 0.05).abs() < 1e-12);
        let best = headline(&promises).unwrap();
        assert_eq!(best.depth, 2);
        assert_eq!(
            best.to_string(),
            "a bug of depth 2 would have been found with probability 0.999999 at least (0.0500 per run)"
        );
        assert_eq!([0.99997, 0.0083333, 2e-4].map(rounded), ["0.9999", "0.0083", "2.0e-4"]);
        assert!(super::promises(&RunParameters::of("random"), 2, 10, &[5]).is_empty());
    }
}
