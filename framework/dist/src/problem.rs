//! What can be wrong with a distribution, and where in it.

use std::fmt;

use crate::duration::DurationError;
use crate::spec::Value;

/// Where in a [`Spec`](crate::Spec) a problem is, so that a file can point at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// The interval, counted from 0, of a weighted distribution.
    pub interval: Option<usize>,
    /// The key; without one, the problem is of the whole distribution or interval.
    pub key: Option<&'static str>,
}

/// One thing wrong with a distribution.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// Where it is.
    pub place: Place,
    /// What it is.
    pub kind: ProblemKind,
}

/// Everything wrong with a distribution, in the order of its keys; at least one.
#[derive(Debug, Clone, PartialEq)]
pub struct Problems(pub(crate) Vec<Problem>);

/// The ways in which a distribution can be wrong.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProblemKind {
    /// A range that holds nothing.
    #[error("min {min} is greater than max {max}")]
    MinAboveMax {
        /// The lower end as written.
        min: Value,
        /// The upper end as written.
        max: Value,
    },
    /// NaN or infinity.
    #[error("{0} is not a finite number")]
    NotFinite(f64),
    /// A text that is not a duration.
    #[error(transparent)]
    BadDuration(#[from] DurationError),
    /// Numbers and durations in one distribution.
    #[error("a {found} among {expected}s: a distribution is all numbers or all durations")]
    MixedUnits {
        /// What the rest of the distribution is.
        expected: Unit,
        /// What this one is.
        found: Unit,
    },
    /// A range wider than the floating-point numbers.
    #[error("the range is too wide to compute with")]
    TooWide,
    /// Zero or negative standard deviation.
    #[error("sigma {0} must be greater than 0")]
    SigmaNotPositive(Value),
    /// Zero or negative rate.
    #[error("rate {0} must be greater than 0")]
    RateNotPositive(f64),
    /// Both ways to say how steep an exponential curve is.
    #[error("mean and rate both say how steep the curve is: give one of them")]
    MeanAndRate,
    /// A mean that no decreasing curve over the range has.
    #[error(
        "mean {mean} cannot be reached: a decreasing curve has it above min and below the middle, {middle}"
    )]
    MeanOutOfReach {
        /// The mean as written.
        mean: Value,
        /// The middle of the range.
        middle: Value,
    },
    /// A weighted distribution without intervals.
    #[error("a weighted distribution needs at least one interval")]
    NoIntervals,
    /// A negative probability.
    #[error("probability {0} is negative")]
    NegativeProbability(f64),
    /// Probabilities that do not sum to 1 within 1e-9.
    #[error("the probabilities sum to {0}, they must sum to 1")]
    ProbabilitySum(f64),
}

/// What the values of a distribution measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Plain numbers.
    Number,
    /// Durations.
    Duration,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Number => "number",
            Self::Duration => "duration",
        })
    }
}

impl Problems {
    /// The problems, at least one.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.0.iter()
    }
}

impl IntoIterator for Problems {
    type Item = Problem;
    type IntoIter = std::vec::IntoIter<Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.interval, self.key) {
            (None, None) => f.write_str("distribution"),
            (None, Some(key)) => f.write_str(key),
            (Some(interval), None) => write!(f, "interval {interval}"),
            (Some(interval), Some(key)) => write!(f, "interval {interval}, {key}"),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.kind)
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.0.iter().enumerate() {
            let separator = if i == 0 { "" } else { "; " };
            write!(f, "{separator}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}
