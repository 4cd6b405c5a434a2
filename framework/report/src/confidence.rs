//! How sure clean runs make it that something is fixed.
//!
//! A failure came back `k` times in `N` runs. Before those runs every rate was taken as equally likely, so after them the
//! rate has a Beta(k+1, N−k+1) distribution, and were the failure still there, the chance that `m` more runs stay clean
//! is the mean of (1−p)^m over it:
//!
//! ```text
//! P(m clean | not fixed) = ∏ (N−k+1+i) / (N−k+1+i+m)   for i = 0 … k
//! ```
//!
//! That counts how well the rate is known: one hit in a hundred runs asks for more clean runs than a hundred hits in ten
//! thousand.

use crate::model::Reproduction;

/// How sure is sure.
pub const SURE: f64 = 0.95;

/// The natural logarithm of the chance that `clean` runs stay clean although nothing was fixed.
fn ln_missed(seen: &Reproduction, clean: f64) -> f64 {
    let missed = seen.runs.saturating_sub(seen.reproduced) as f64 + 1.0;
    // A rate that is known to six digits needs no more factors: the rest are like the last.
    const FACTORS: u64 = 100_000;
    let factors = (seen.reproduced + 1).min(FACTORS);
    let scale = (seen.reproduced + 1) as f64 / factors as f64;
    let sum: f64 = (0..factors).map(|i| -(clean / (missed + i as f64 * scale)).ln_1p()).sum();
    sum * scale
}

/// The probability that a failure which came back so often would have shown in so many runs.
pub fn would_have_shown(seen: &Reproduction, clean: u64) -> f64 {
    -ln_missed(seen, clean as f64).exp_m1()
}

/// Clean runs after which one is that sure that it is fixed. None when it never came back: then nothing is known about
/// its rate but that it is small.
pub fn clean_runs_for(seen: &Reproduction, sure: f64) -> Option<u64> {
    if seen.reproduced == 0 || !(0.0..1.0).contains(&sure) {
        return None;
    }
    let enough = |clean: u64| would_have_shown(seen, clean) >= sure;
    let mut most = 1_u64;
    while !enough(most) {
        most = most.checked_mul(2).filter(|most| *most < 1 << 62)?;
    }
    let mut least = most / 2;
    while least + 1 < most {
        let middle = least + (most - least) / 2;
        if enough(middle) {
            most = middle;
        } else {
            least = middle;
        }
    }
    Some(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(reproduced: u64, runs: u64) -> Reproduction {
        Reproduction { reproduced, runs, seconds: 1.0 }
    }

    #[test]
    fn a_failure_that_always_comes_back_needs_few_runs() {
        // k = N = 10: m clean have the chance ∏ (1+i)/(1+i+m), that is 1/12 for one and 1/78 for two.
        assert!((would_have_shown(&seen(10, 10), 1) - 11.0 / 12.0).abs() < 1e-12);
        assert!((would_have_shown(&seen(10, 10), 2) - 77.0 / 78.0).abs() < 1e-12);
        assert_eq!(clean_runs_for(&seen(10, 10), SURE), Some(2));
    }

    #[test]
    fn a_well_known_rate_needs_what_the_plain_formula_says_and_a_guess_needs_more() {
        // ln 0.05 / ln 0.99 = 298.07
        let known = clean_runs_for(&seen(10_000, 1_000_000), SURE).unwrap();
        assert!((298..=301).contains(&known), "{known}");
        let guessed = clean_runs_for(&seen(1, 100), SURE).unwrap();
        // (100·101)/((100+m)(101+m)) ≤ 0.05
        assert_eq!(guessed, 349);
    }

    #[test]
    fn the_number_is_enough_and_one_fewer_is_not() {
        for (k, n) in [(1, 1), (1, 7), (3, 1000), (17, 2_000_000_000), (5_000_000, 6_000_000)] {
            for sure in [0.5, 0.95, 0.999] {
                let runs = clean_runs_for(&seen(k, n), sure).unwrap();
                assert!(would_have_shown(&seen(k, n), runs) >= sure, "{k}/{n}");
                assert!(runs == 1 || would_have_shown(&seen(k, n), runs - 1) < sure, "{k}/{n}");
            }
        }
    }

    #[test]
    fn what_never_came_back_tells_nothing() {
        assert_eq!(clean_runs_for(&seen(0, 1000), SURE), None);
        assert_eq!(clean_runs_for(&seen(1, 2), 1.0), None);
    }
}
