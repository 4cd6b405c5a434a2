//! How sure clean runs make it that something is fixed, without flattering the estimate of how often it came.
//!
//! A failure came `k` times until run `N`; it was looked for until it came, so `N` is itself a matter of chance and k / N is
//! too high more often than not. Let the rate be any p, q = 1 − p, and ask for m = c·N clean runs. N is a sum of k
//! geometric numbers, so the chance that an unchanged program makes that many clean runs is
//!
//! ```text
//! E[q^(c·N)] = (p·q^c / (1 − q^(1+c)))^k  ≤  (1 + c)^−k = (N / (N + m))^k
//! ```
//!
//! because 1 − q^(1+c) = (1+c)·∫x^c over [q, 1] ≥ (1+c)·p·q^c. The bound holds for every p; nothing has to be assumed about
//! it. Where the number of runs was fixed beforehand instead, the sum over all k ≥ 1 stays below the same bound. One hit
//! therefore asks for many more clean runs than ten: 32·N and 0.42·N for 95 %.
//!
//! What no formula can undo: a failure that was found by luck, far below the rate that its runs could show. A part of the
//! error is set aside for that (`LUCK`).

use crate::model::Reproduction;

/// How sure is sure.
pub const SURE: f64 = 0.95;

/// The chance of a wrong answer is multiplied by this. With it, 95 % also holds among the failures that were found in a
/// limited number of runs, if the limit was at least 1 / p: there the bound alone is exceeded by up to 1.6.
const LUCK: f64 = 1.0 / 0.6;

/// The natural logarithm of a bound of the chance that `clean` runs stay clean although nothing was fixed.
fn ln_missed(seen: &Reproduction, clean: f64) -> f64 {
    -(seen.reproduced as f64) * (clean / seen.runs.max(seen.reproduced).max(1) as f64).ln_1p()
}

/// How sure so many clean runs make it that a failure which came so often is gone: of programs in which it still is,
/// at most the rest gets through so many runs.
pub fn would_have_shown(seen: &Reproduction, clean: u64) -> f64 {
    would_all_have_shown(&[(*seen, clean)])
}

/// The same of a failure that came in several ways, each with a rate and with clean runs of its own: each way is bounded for
/// every p, and they are independent of each other, so the bounds multiply.
pub fn would_all_have_shown(ways: &[(Reproduction, u64)]) -> f64 {
    let missed: f64 = ways.iter().map(|(seen, clean)| ln_missed(seen, *clean as f64)).sum();
    (1.0 - LUCK * missed.exp()).max(0.0)
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
    fn one_hit_asks_for_many_more_clean_runs_than_ten() {
        // (N / (N + m))^k ≤ 0.03
        assert_eq!(clean_runs_for(&seen(1, 45), SURE), Some(1455));
        assert_eq!(clean_runs_for(&seen(10, 450), SURE), Some(189));
        assert_eq!(clean_runs_for(&seen(10, 10), SURE), Some(5));
        // ln 0.03 / ln 0.99 = 348.9
        let known = clean_runs_for(&seen(10_000, 1_000_000), SURE).unwrap();
        assert!((349..=352).contains(&known), "{known}");
    }

    /// Unchanged buggy programs, whose failure comes with any rate, are looked at until it came `k` times and then verified.
    /// "Fixed" is said of at most 3 % of them (see the module), so of 20,000 a share of 5 % is more than 16 standard
    /// deviations away: a false alarm has a probability far below 1e-6.
    #[test]
    fn an_unchanged_program_is_rarely_called_fixed() {
        const PROGRAMS: u64 = 20_000;
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut uniform = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
        };
        for (rate, hits) in
            [(0.3_f64, 1), (0.02, 1), (1.0 / 500.0, 1), (1e-5, 1), (0.02, 3), (1.0 / 500.0, 10)]
        {
            let mut wrong = 0_u64;
            for _ in 0..PROGRAMS {
                let mut until_it_comes = || (uniform().ln() / (-rate).ln_1p()).ceil().max(1.0) as u64;
                let found = seen(hits, (0..hits).map(|_| until_it_comes()).sum());
                wrong += u64::from(until_it_comes() > clean_runs_for(&found, SURE).unwrap());
            }
            assert!(wrong * 20 <= PROGRAMS, "rate {rate}, {hits} hits: {wrong} of {PROGRAMS} called fixed");
        }
    }

    /// The failure was found in a limited number of runs, at whose end it had come at least once. Exact sums.
    #[test]
    fn what_was_found_in_a_limited_number_of_runs_is_rarely_called_fixed_either() {
        const RUNS: u64 = 2000;
        for expected in [1.0, 2.0, 5.0, 20.0] {
            let rate = expected / RUNS as f64;
            let clean = |found: Reproduction| (-rate).ln_1p() * clean_runs_for(&found, SURE).unwrap() as f64;
            let none = ((-rate).ln_1p() * RUNS as f64).exp();
            // All runs are made; k of them fail.
            let (mut chance, mut wrong) = (none, 0.0);
            for k in 1..200 {
                chance *= (RUNS - k + 1) as f64 / k as f64 * rate / (1.0 - rate);
                wrong += chance * clean(seen(k, RUNS)).exp();
            }
            assert!(wrong / (1.0 - none) <= 0.05, "{expected} expected: {wrong}");
            // The first failure ends them.
            let first = |run: u64| rate * ((-rate).ln_1p() * (run - 1) as f64).exp();
            let wrong: f64 = (1..=RUNS).map(|run| first(run) * clean(seen(1, run)).exp()).sum();
            assert!(wrong / (1.0 - none) <= 0.05, "{expected} expected, first: {wrong}");
        }
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
