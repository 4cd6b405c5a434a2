//! Gaussian: the bell curve, optionally cut off at one end or both.
//!
//! A wide window is served by drawing until inside. For windows where that would rarely succeed the
//! proposals follow C. P. Robert, "Simulation of truncated normal variables" (1995): uniform proposals for
//! narrow windows, exponential ones for tails. Every choice accepts nearly half of its proposals or more, so the
//! cost is bounded wherever the window lies.
//!
//! Whole numbers are the nearest to a draw from the window widened by one half at both ends, so that the
//! first and the last of them get their whole share.

use std::f64::consts::{E, TAU};

use rand::{Rng, RngExt};
use rand_distr::{Distribution, Exp1, StandardNormal};

use crate::problem::{ProblemKind, Unit};
use crate::quantity::{Check, Quantity, Range};
use crate::spec;

/// Draws from a bell curve, whole numbers and floats.
#[derive(Clone, Debug)]
pub(crate) struct GaussianSampler {
    ints: Window,
    first: i64,
    last: i64,
    floats: Window,
}

impl GaussianSampler {
    pub(crate) fn check(spec: &spec::Gaussian, check: &mut Check) -> Option<Self> {
        let mean = check.quantity("mean", &spec.mean);
        let sigma = check.quantity("sigma", &spec.sigma).map(Quantity::as_f64);
        if sigma.is_some_and(|sigma| sigma <= 0.0) {
            check.problem("sigma", ProblemKind::SigmaNotPositive(spec.sigma.clone()));
        }
        let ends = match (&spec.min, &spec.max) {
            (Some(min), Some(max)) => check.range(min, max).map(|Range { min, max }| (Some(min), Some(max))),
            (Some(min), None) => check.quantity("min", min).map(|min| (Some(min), None)),
            (None, Some(max)) => check.quantity("max", max).map(|max| (None, Some(max))),
            (None, None) => Some((None, None)),
        };
        let (mean, sigma, (min, max)) = (mean?.as_f64(), sigma.filter(|sigma| *sigma > 0.0)?, ends?);
        // Forty standard deviations are more than a generator of 64 bits can reach.
        if !(mean.abs() + 40.0 * sigma).is_finite() {
            check.problem("sigma", ProblemKind::TooWide);
            return None;
        }
        // There are no negative durations.
        let zero = (check.unit() == Unit::Duration).then_some(Quantity::Int(0));
        Some(Self::new(mean, sigma, min.or(zero), max))
    }

    fn new(mean: f64, sigma: f64, min: Option<Quantity>, max: Option<Quantity>) -> Self {
        let (first, last) = match (min, max) {
            (Some(min), Some(max)) => Range { min, max }.ints(),
            _ => (min.map_or(i64::MIN, Quantity::ceil), max.map_or(i64::MAX, Quantity::floor)),
        };
        let low = |end: f64| if min.is_some() { end } else { f64::NEG_INFINITY };
        let high = |end: f64| if max.is_some() { end } else { f64::INFINITY };
        Self {
            ints: Window::new(mean, sigma, low(first as f64 - 0.5), high(last as f64 + 0.5)),
            first,
            last,
            floats: Window::new(
                mean,
                sigma,
                low(min.map_or(0.0, Quantity::as_f64)),
                high(max.map_or(0.0, Quantity::as_f64)),
            ),
        }
    }

    #[inline(never)]
    pub(crate) fn int<R: Rng + ?Sized>(&self, rng: &mut R) -> i64 {
        let value = self.ints.sample(rng);
        // The conversion cuts towards zero and stops at the ends of the 64-bit range; unlike `round` it is
        // one instruction on every x86-64.
        ((value + 0.5_f64.copysign(value)) as i64).clamp(self.first, self.last)
    }

    #[inline(never)]
    pub(crate) fn float<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        self.floats.sample(rng)
    }
}

/// A bell curve between two ends, either of which may be infinite.
#[derive(Clone, Debug)]
struct Window {
    mean: f64,
    sigma: f64,
    low: f64,
    high: f64,
    proposal: Proposal,
}

/// How candidates are made. Lengths are in standard deviations.
#[derive(Clone, Debug)]
enum Proposal {
    /// The whole curve.
    Curve,
    /// Uniform over the window, which is narrow.
    Flat { width: f64 },
    /// Exponential from the end nearest to the mean, which lies outside the window.
    Tail { rate: f64, upwards: bool },
}

impl Window {
    fn new(mean: f64, sigma: f64, low: f64, high: f64) -> Self {
        let width = (high - low) / sigma;
        // How far the mean lies outside the window; negative inside.
        let (below, above) = ((low - mean) / sigma, (mean - high) / sigma);
        let outside = below.max(above);
        let proposal = if outside <= 0.0 {
            if width >= TAU.sqrt() { Proposal::Curve } else { Proposal::Flat { width } }
        } else {
            // Robert's best rate, (a + sqrt(a² + 4)) / 2, without overflow.
            let rate = (outside + outside.hypot(2.0)) / 2.0;
            if width <= E.sqrt() / rate * (-outside / (2.0 * rate)).exp() {
                Proposal::Flat { width }
            } else {
                Proposal::Tail { rate, upwards: below > above }
            }
        };
        Self { mean, sigma, low, high, proposal }
    }

    #[inline]
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        if let Proposal::Curve = self.proposal {
            loop {
                let z: f64 = StandardNormal.sample(rng);
                let value = self.mean + self.sigma * z;
                if self.low <= value && value <= self.high {
                    return value;
                }
            }
        }
        self.sample_unlikely_window(rng)
    }

    /// Apart, so that the usual window does not pay for the registers that this needs.
    #[cold]
    fn sample_unlikely_window<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        loop {
            let (value, acceptance) = match self.proposal {
                Proposal::Curve => unreachable!("served by `sample`"),
                Proposal::Flat { width } => {
                    let z = width * rng.random::<f64>();
                    let value = (self.low + self.sigma * z).min(self.high);
                    let peak = self.mean.clamp(self.low, self.high);
                    let (step, slope) = ((value - peak) / self.sigma, (peak - self.mean) / self.sigma);
                    // exp(-(z² - p²)/2) for a value z and the peak p away from the mean.
                    (value, (-step * (step / 2.0 + slope)).exp())
                }
                Proposal::Tail { rate, upwards } => {
                    let exponential: f64 = Exp1.sample(rng);
                    let step = exponential / rate;
                    let value =
                        if upwards { self.low + self.sigma * step } else { self.high - self.sigma * step };
                    // The best rate minus its window's distance from the mean is 1/rate.
                    (value, (-(step - 1.0 / rate).powi(2) / 2.0).exp())
                }
            };
            if self.low <= value && value <= self.high && rng.random::<f64>() <= acceptance {
                return value;
            }
        }
    }
}
