//! Uniform: every value of a closed range alike.

use rand::Rng;
use rand_distr::{Distribution, Uniform};

use crate::quantity::{Check, Range};
use crate::spec;

/// Draws whole numbers without bias over any range, the full 64 bits included, and floats over `[min, max]`.
#[derive(Clone, Debug)]
pub(crate) struct UniformSampler {
    ints: Uniform<i64>,
    floats: Uniform<f64>,
}

impl UniformSampler {
    pub(crate) fn check(spec: &spec::Uniform, check: &mut Check) -> Option<Self> {
        check.range(&spec.min, &spec.max).map(Self::new)
    }

    pub(crate) fn new(range: Range) -> Self {
        let (first, last) = range.ints();
        let (min, max) = range.floats();
        Self {
            ints: Uniform::new_inclusive(first, last).expect("a checked range is not empty"),
            floats: Uniform::new_inclusive(min, max).expect("a checked range is finite and not empty"),
        }
    }

    #[inline]
    pub(crate) fn int<R: Rng + ?Sized>(&self, rng: &mut R) -> i64 {
        self.ints.sample(rng)
    }

    #[inline]
    pub(crate) fn float<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        self.floats.sample(rng)
    }
}
