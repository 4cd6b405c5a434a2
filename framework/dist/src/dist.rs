//! A checked distribution, ready to draw from.

use std::time::Duration;

use rand::Rng;

use crate::exponential::ExponentialSampler;
use crate::gaussian::GaussianSampler;
use crate::problem::{Problems, Unit};
use crate::quantity::Check;
use crate::spec::Spec;
use crate::uniform::UniformSampler;
use crate::weighted::WeightedSampler;

/// A distribution that is known to make sense.
///
/// Any distribution can be asked for whole numbers, floats or durations, whichever the test needs. A
/// duration counts as its number of nanoseconds. Drawing allocates nothing and depends on nothing but the
/// generator.
#[derive(Clone, Debug)]
pub struct Dist {
    unit: Unit,
    shape: Shape,
}

/// The choice between these is inlined at the caller, and so is a uniform draw, which is only a few
/// instructions. The others are calls: together in one function they would save each other's registers,
/// which costs more than the call.
#[derive(Clone, Debug)]
enum Shape {
    Uniform(UniformSampler),
    Gaussian(Box<GaussianSampler>),
    Exponential(ExponentialSampler),
    Weighted(WeightedSampler),
}

impl Dist {
    /// Checks a distribution.
    ///
    /// # Errors
    /// All that is wrong with it, each with its place.
    pub fn new(spec: &Spec) -> Result<Self, Problems> {
        let mut check = Check::default();
        let shape = match spec {
            Spec::Uniform(spec) => UniformSampler::check(spec, &mut check).map(Shape::Uniform),
            Spec::Gaussian(spec) => {
                GaussianSampler::check(spec, &mut check).map(|gaussian| Shape::Gaussian(Box::new(gaussian)))
            }
            Spec::Exponential(spec) => ExponentialSampler::check(spec, &mut check).map(Shape::Exponential),
            Spec::Weighted(spec) => WeightedSampler::check(spec, &mut check).map(Shape::Weighted),
        };
        let unit = check.unit();
        let problems = check.into_problems();
        match shape {
            Some(shape) if problems.is_empty() => Ok(Self { unit, shape }),
            _ => Err(Problems(problems)),
        }
    }

    /// Whether it was written in numbers or in durations.
    pub fn unit(&self) -> Unit {
        self.unit
    }

    /// Draws a whole number.
    ///
    /// Always inside the range; where the range holds no whole number, the one nearest to its lower end.
    /// Uniform and weighted draws are exact over all 64 bits. The curves are computed in double precision:
    /// across ranges wider than 2^53 not every whole number can occur.
    #[inline(always)]
    pub fn sample_int<R: Rng + ?Sized>(&self, rng: &mut R) -> i64 {
        match &self.shape {
            Shape::Uniform(uniform) => uniform.int(rng),
            Shape::Gaussian(gaussian) => gaussian.int(rng),
            Shape::Exponential(exponential) => exponential.int(rng),
            Shape::Weighted(weighted) => weighted.int(rng),
        }
    }

    /// Draws a float, always inside the range.
    #[inline(always)]
    pub fn sample_float<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        match &self.shape {
            Shape::Uniform(uniform) => uniform.float(rng),
            Shape::Gaussian(gaussian) => gaussian.float(rng),
            Shape::Exponential(exponential) => exponential.float(rng),
            Shape::Weighted(weighted) => weighted.float(rng),
        }
    }

    /// Draws a duration in whole nanoseconds; a negative number gives zero.
    #[inline]
    pub fn sample_duration<R: Rng + ?Sized>(&self, rng: &mut R) -> Duration {
        Duration::from_nanos(self.sample_int(rng).max(0).unsigned_abs())
    }

    /// Draws an index into a list of `len` entries, or `None` when the list is empty.
    ///
    /// A whole number is drawn and taken modulo `len`, so 0 is the first entry and a range that fits the
    /// list means exactly what it says.
    #[inline]
    pub fn sample_index<R: Rng + ?Sized>(&self, rng: &mut R, len: usize) -> Option<usize> {
        let index = self.sample_int(rng);
        if let Ok(index) = usize::try_from(index)
            && index < len
        {
            return Some(index);
        }
        // A list longer than i64::MAX does not exist.
        (len > 0).then(|| index.rem_euclid(i64::try_from(len).unwrap_or(i64::MAX)) as usize)
    }
}
