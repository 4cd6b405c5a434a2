//! What random suspension guarantees, as a number.
//!
//! The concurrency testing model (Appendix I) bounds from below the probability that one iteration of a test
//! shows a bug of depth one, that is, one that needs a single ordering of two instructions:
//!
//! ```text
//! P(bug) > 1/(2N) · MINTP / (MAXRP + MAXSD)
//! ```
//!
//! 1/N is the chance of choosing the thread that has to wait, 1/2 the average chance that it is stopped before
//! the instruction and not after it, and the last factor the chance that a window of the randomizer meets
//! the iteration at all. Everything here is arithmetic; measuring N and MINTP is the caller's.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::settings::Settings;

/// What the bound depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameters {
    /// N: threads that can be chosen.
    pub threads: u32,
    /// MINTP: the shortest iteration of the test.
    pub min_test: Duration,
    /// MAXRP: the longest rest between two windows.
    pub max_period: Duration,
    /// MAXSD: the longest suspension.
    pub max_suspend: Duration,
}

/// The probability that an iteration finds a bug of depth one, from below.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Bound(f64);

/// Parameters for which there is no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BoundError {
    /// One thread has no interleavings.
    #[error("threads is {0}: the bound needs at least 2, one thread has nothing to be interleaved with")]
    TooFewThreads(u32),
    /// An iteration that takes no time cannot be met.
    #[error("min-test is 0: measure the shortest iteration of the test")]
    NoTestTime,
    /// A randomizer that neither rests nor suspends.
    #[error("max-period and max-suspend are both 0: at least one must be longer")]
    NoCycle,
    /// The settings have a distribution without an upper end.
    #[error("{key} has no greatest value, so there is no bound: give it a max")]
    Unbounded {
        /// The key of the distribution.
        key: &'static str,
    },
}

/// What must hold for the bound to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Assumption {
    /// The bug needs one ordering constraint.
    DepthOne,
    /// One thread is suspended at a time.
    OneAtATime,
    /// Rest and suspension are uniformly distributed.
    Uniform,
    /// The shortest suspension is long enough for the other thread to pass the second instruction.
    LongEnough,
    /// The instruction is anywhere in the iteration with equal chance: the 1/2 is an average over bugs.
    AnyPlace,
    /// Iterations are independent of each other; needed for more than one iteration.
    Independent,
}

impl Assumption {
    /// All of them.
    pub const ALL: [Assumption; 6] = [
        Assumption::DepthOne,
        Assumption::OneAtATime,
        Assumption::Uniform,
        Assumption::LongEnough,
        Assumption::AnyPlace,
        Assumption::Independent,
    ];
}

impl fmt::Display for Assumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Assumption::DepthOne => "the bug has depth one: a single ordering of two instructions shows it",
            Assumption::OneAtATime => "one thread is suspended at a time",
            Assumption::Uniform => "period and suspend are uniformly distributed",
            Assumption::LongEnough => {
                "the shortest suspension is longer than the other thread needs to reach its instruction"
            }
            Assumption::AnyPlace => {
                "the instruction is equally likely anywhere in the iteration (an average over bugs)"
            }
            Assumption::Independent => "iterations are independent of each other",
        })
    }
}

impl Bound {
    /// Computes the bound.
    ///
    /// An iteration longer than a whole turn of the randomizer is met with certainty, so the last factor is
    /// at most 1.
    ///
    /// # Errors
    /// When there is nothing to interleave or a time is zero that must not be.
    pub fn new(parameters: &Parameters) -> Result<Bound, BoundError> {
        let Parameters { threads, min_test, max_period, max_suspend } = *parameters;
        if threads < 2 {
            return Err(BoundError::TooFewThreads(threads));
        }
        if min_test.is_zero() {
            return Err(BoundError::NoTestTime);
        }
        // In nanoseconds, so that the sum of two very long durations cannot overflow a `Duration`.
        let turn = max_period.as_nanos() + max_suspend.as_nanos();
        if turn == 0 {
            return Err(BoundError::NoCycle);
        }
        let met = (min_test.as_nanos() as f64 / turn as f64).min(1.0);
        Ok(Bound(met / (2.0 * f64::from(threads))))
    }

    /// The bound for these settings, and the assumptions that they break.
    ///
    /// # Errors
    /// As [`Bound::new`], and when a distribution has no upper end.
    pub fn of_settings(
        settings: &Settings,
        threads: u32,
        min_test: Duration,
    ) -> Result<(Bound, Vec<Assumption>), BoundError> {
        let max_period = settings.period.longest().ok_or(BoundError::Unbounded { key: "period" })?;
        let max_suspend = settings.suspend.longest().ok_or(BoundError::Unbounded { key: "suspend" })?;
        let bound = Bound::new(&Parameters { threads, min_test, max_period, max_suspend })?;
        let mut broken = Vec::new();
        if settings.count.most() != Some(1) {
            broken.push(Assumption::OneAtATime);
        }
        if !(settings.period.is_uniform() && settings.suspend.is_uniform()) {
            broken.push(Assumption::Uniform);
        }
        Ok((bound, broken))
    }

    /// The probability per iteration.
    pub fn per_run(self) -> f64 {
        self.0
    }

    /// The probability that at least one of so many iterations shows the bug.
    pub fn after(self, runs: u64) -> f64 {
        -(runs as f64 * (-self.0).ln_1p()).exp_m1()
    }

    /// Iterations after which the bug was shown with this probability; none unless it is between 0 and 1.
    pub fn runs_for(self, confidence: f64) -> Option<u64> {
        (confidence > 0.0 && confidence < 1.0)
            .then(|| ((-confidence).ln_1p() / (-self.0).ln_1p()).ceil().max(1.0) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(threads: u32, test: u64, period: u64, suspend: u64) -> Parameters {
        Parameters {
            threads,
            min_test: Duration::from_micros(test),
            max_period: Duration::from_micros(period),
            max_suspend: Duration::from_micros(suspend),
        }
    }

    fn bound(threads: u32, test: u64, period: u64, suspend: u64) -> f64 {
        Bound::new(&parameters(threads, test, period, suspend)).expect("a bound").per_run()
    }

    #[test]
    fn follows_the_formula() {
        assert_eq!(bound(2, 1000, 3000, 1000), 0.25 * 0.25);
        assert_eq!(bound(4, 10, 60, 40), 0.125 * 0.1);
        assert_eq!(bound(16, 100, 100, 0), 1.0 / 32.0);
    }

    #[test]
    fn falls_as_one_over_the_number_of_threads() {
        for n in [2, 3, 8, 100] {
            let ratio = bound(n, 50, 1000, 500) / bound(2 * n, 50, 1000, 500);
            assert!((ratio - 2.0).abs() < 1e-12, "{n}");
        }
    }

    #[test]
    fn a_long_iteration_is_met_at_most_once() {
        assert_eq!(bound(2, 1_000_000, 10, 10), 0.25);
        assert_eq!(bound(2, 20, 10, 10), 0.25);
    }

    #[test]
    fn says_why_there_is_none() {
        let error = |n, t, p, s| Bound::new(&parameters(n, t, p, s)).expect_err("no bound");
        assert_eq!(error(0, 1, 1, 1), BoundError::TooFewThreads(0));
        assert_eq!(error(1, 1, 1, 1), BoundError::TooFewThreads(1));
        assert_eq!(error(2, 0, 1, 1), BoundError::NoTestTime);
        assert_eq!(error(2, 1, 0, 0), BoundError::NoCycle);
    }

    #[test]
    fn many_runs_add_up() {
        let bound = Bound(0.5);
        assert!((bound.after(1) - 0.5).abs() < 1e-15);
        assert!((bound.after(3) - 0.875).abs() < 1e-15);
        assert_eq!(bound.after(0), 0.0);
        assert_eq!(bound.runs_for(0.875), Some(3));
        assert_eq!(bound.runs_for(0.9), Some(4));
    }

    #[test]
    fn small_probabilities_keep_their_digits() {
        let bound = Bound(1e-12);
        assert!((bound.after(1_000_000) / 1e-6 - 1.0).abs() < 1e-6);
        let runs = bound.runs_for(0.95).expect("between 0 and 1") as f64;
        // ln 20 / 1e-12
        assert!((runs / 2.995_732_273_553_991e12 - 1.0).abs() < 1e-9, "{runs}");
    }

    #[test]
    fn enough_runs_reach_the_confidence_and_one_fewer_does_not() {
        for p in [0.3, 0.01, 1e-5] {
            for confidence in [0.5, 0.95, 0.999] {
                let bound = Bound(p);
                let runs = bound.runs_for(confidence).expect("between 0 and 1");
                assert!(bound.after(runs) >= confidence - 1e-12);
                assert!(bound.after(runs - 1) < confidence);
            }
        }
    }

    #[test]
    fn certainty_has_no_number_of_runs() {
        for confidence in [0.0, 1.0, -0.1, 1.5, f64::NAN] {
            assert_eq!(Bound(0.5).runs_for(confidence), None);
        }
    }

    #[test]
    fn settings_that_break_an_assumption_say_so() {
        let settings = |text: &str| Settings::from_toml(text).expect("valid");
        let test = Duration::from_millis(1);
        let one = settings("period = { uniform = { min = '0s', max = '3ms' } }\nsuspend = '1ms'\ncount = 1");
        let (bound, broken) = Bound::of_settings(&one, 2, test).expect("a bound");
        assert_eq!((bound.per_run(), broken), (0.0625, vec![]));
        let many = settings("period = { exponential = { min = '0s', max = '3ms' } }\ncount = 2");
        let (_, broken) = Bound::of_settings(&many, 2, test).expect("a bound");
        assert_eq!(broken, [Assumption::OneAtATime, Assumption::Uniform]);
        let endless = settings("suspend = { gaussian = { mean = '1ms', sigma = '1ms' } }");
        assert_eq!(Bound::of_settings(&endless, 2, test), Err(BoundError::Unbounded { key: "suspend" }));
    }
}
