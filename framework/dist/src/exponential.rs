//! Exponential: a decreasing curve fitted from min to max.
//!
//! The density at `x` is proportional to `exp(-rate (x - min))` on `[min, max]` and zero outside. Whole
//! numbers have the same ratio from each to the next: they are the whole part of a draw from a range that
//! ends one later.

use rand::{Rng, RngExt};
use rand_distr::{Distribution, Exp1};

use crate::problem::{ProblemKind, Unit};
use crate::quantity::Check;
use crate::spec;

/// Draws from a decreasing exponential curve, whole numbers and floats.
#[derive(Clone, Debug)]
pub(crate) struct ExponentialSampler {
    first: i64,
    /// Whole numbers after the first.
    more: u64,
    ints: Fall,
    min: f64,
    max: f64,
    floats: Fall,
}

impl ExponentialSampler {
    pub(crate) fn check(spec: &spec::Exponential, check: &mut Check) -> Option<Self> {
        let range = check.range(&spec.min, &spec.max);
        let mean = spec.mean.as_ref().map(|mean| (mean, check.quantity("mean", mean)));
        let rate = spec.rate.map(|rate| check.finite("rate", rate));
        if let Some(Some(rate)) = rate
            && rate <= 0.0
        {
            check.problem("rate", ProblemKind::RateNotPositive(rate));
            return None;
        }
        if mean.is_some() && rate.is_some() {
            check.problem("rate", ProblemKind::MeanAndRate);
            return None;
        }
        let range = range?;
        let (min, max) = range.floats();
        let (first, last) = range.ints();
        let more = last.wrapping_sub(first) as u64;
        let (mut int_rate, mut rate) = match (mean, rate) {
            (Some((written, mean)), _) => {
                let mean = mean?.as_f64();
                let middle = min + (max - min) / 2.0;
                if !(min < mean && mean < middle) {
                    let middle = check.in_words(middle);
                    check.problem("mean", ProblemKind::MeanOutOfReach { mean: written.clone(), middle });
                    return None;
                }
                let rate = rate_of_mean((mean - min) / (max - min)) / (max - min);
                (rate_of_whole_mean(mean - first as f64, more).unwrap_or(rate), rate)
            }
            (None, Some(rate)) => (rate?, rate?),
            (None, None) => {
                let rate = 1000_f64.ln() / (max - min);
                (rate, rate)
            }
        };
        // A rate is written per second, and durations are counted in nanoseconds.
        if spec.rate.is_some() && check.unit() == Unit::Duration {
            int_rate /= 1e9;
            rate /= 1e9;
        }
        Some(Self {
            first,
            more,
            ints: if more == 0 { Fall::None } else { Fall::new(int_rate, more as f64 + 1.0) },
            min,
            max,
            floats: Fall::new(rate, max - min),
        })
    }

    #[inline(never)]
    pub(crate) fn int<R: Rng + ?Sized>(&self, rng: &mut R) -> i64 {
        let offset = (self.ints.sample(rng) as u64).min(self.more);
        self.first.wrapping_add(offset as i64)
    }

    #[inline(never)]
    pub(crate) fn float<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        (self.min + self.floats.sample(rng)).min(self.max)
    }
}

/// The decreasing curve from 0 to a width.
#[derive(Clone, Debug)]
enum Fall {
    /// No width.
    None,
    /// So flat that no draw could tell it from uniform.
    Flat { width: f64 },
    /// Less than half of the whole curve is inside: the inverse of the distribution function.
    Gentle { scale: f64, inside: f64, width: f64 },
    /// At least half is inside: draw until inside, which is quicker than a logarithm.
    Steep { scale: f64, width: f64 },
}

impl Fall {
    fn new(rate: f64, width: f64) -> Self {
        let steps = rate * width;
        if width == 0.0 {
            Self::None
        } else if steps < f64::EPSILON {
            Self::Flat { width }
        } else if steps < std::f64::consts::LN_2 {
            Self::Gentle { scale: 1.0 / rate, inside: -(-steps).exp_m1(), width }
        } else {
            Self::Steep { scale: 1.0 / rate, width }
        }
    }

    #[inline]
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        if let Self::Steep { scale, width } = *self {
            loop {
                let exponential: f64 = Exp1.sample(rng);
                let value = exponential * scale;
                if value <= width {
                    return value;
                }
            }
        }
        self.sample_gentle(rng)
    }

    /// Apart, so that the usual curve does not pay for the registers that the logarithm needs.
    #[cold]
    fn sample_gentle<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        match *self {
            Self::Steep { .. } => unreachable!("served by `sample`"),
            Self::Gentle { scale, inside, width } => {
                (-scale * (-inside * rng.random::<f64>()).ln_1p()).min(width)
            }
            Self::Flat { width } => width * rng.random::<f64>(),
            Self::None => 0.0,
        }
    }
}

/// The rate, for a range of width 1, whose truncated curve has this mean in (0, 1/2).
fn rate_of_mean(mean: f64) -> f64 {
    // The mean of rate c is 1/c - 1/(e^c - 1), which falls from 1/2 to 0 and is below 1/c.
    bisect(1.0 / mean, |c| if c < 1e-3 { 0.5 - c / 12.0 } else { 1.0 / c - 1.0 / c.exp_m1() }, mean)
}

/// The rate for the whole numbers 0 to `last` to have this mean, if any decreasing one has.
fn rate_of_whole_mean(mean: f64, last: u64) -> Option<f64> {
    let count = last as f64 + 1.0;
    if !(mean > 0.0 && mean < last as f64 / 2.0) {
        return None;
    }
    let mean_of = |rate: f64| {
        if rate * count < 1e-3 {
            (count - 1.0) / 2.0 - rate * (count * count - 1.0) / 12.0
        } else {
            1.0 / rate.exp_m1() - count / (rate * count).exp_m1()
        }
    };
    Some(bisect((1.0 / mean).ln_1p(), mean_of, mean))
}

/// Where in (0, high] a decreasing function takes a value.
fn bisect(mut high: f64, f: impl Fn(f64) -> f64, value: f64) -> f64 {
    let mut low = 0.0;
    // Each round halves the interval; the doubles between 0 and any number are exhausted long before.
    for _ in 0..2200 {
        let middle = low + (high - low) / 2.0;
        if middle == low || middle == high {
            break;
        }
        if f(middle) > value { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_has_the_mean_asked_for() {
        for mean in [1e-9, 0.01, 0.1, 0.3, 0.49, 0.4999999] {
            let c = rate_of_mean(mean);
            // Simpson's rule over ten thousand pieces; the curve's mass is inside 40/c.
            let width = 1.0_f64.min(40.0 / c);
            let integral = |f: &dyn Fn(f64) -> f64| {
                let pieces = 10_000;
                let step = width / f64::from(pieces);
                (0..pieces)
                    .map(|i| {
                        let x = f64::from(i) * step;
                        step / 6.0 * (f(x) + 4.0 * f(x + step / 2.0) + f(x + step))
                    })
                    .sum::<f64>()
            };
            let found = integral(&|x| x * (-c * x).exp()) / integral(&|x| (-c * x).exp());
            assert!((found / mean - 1.0).abs() < 1e-6, "{mean} {found}");
        }
    }

    #[test]
    fn the_rate_has_the_mean_asked_for_in_whole_numbers() {
        for (mean, last) in [(0.001, 1), (0.4, 1), (1.5, 10), (4.999, 10), (20.0, 1000)] {
            let rate = rate_of_whole_mean(mean, last).expect("within reach");
            let weight = |k: u64| (-rate * k as f64).exp();
            let total: f64 = (0..=last).map(weight).sum();
            let found = (0..=last).map(|k| k as f64 * weight(k)).sum::<f64>() / total;
            assert!((found / mean - 1.0).abs() < 1e-6, "{mean} {found}");
        }
        assert_eq!(rate_of_whole_mean(5.0, 10), None);
        assert_eq!(rate_of_whole_mean(0.0, 10), None);
    }
}
