//! Any curve as a weighted distribution.
//!
//! A range is cut into intervals within which the density varies by less than a
//! threshold, `|P(x0) - P(x1)| < threshold` (Eq. 1 of the concurrency testing model), and each gets the
//! probability that the curve has over it, the integral of `P`. The smaller the threshold, the closer the
//! steps follow the curve and the more intervals there are.

use crate::spec::{Interval, Spec, Value};

/// Points at which the density is looked at in each piece, both ends included.
const POINTS: usize = 9;
/// Pieces to begin with, so that a peak between two points of a wide range is not overlooked.
const PIECES: usize = 64;
/// Halvings of a piece before the density counts as discontinuous there.
const DEPTH: u32 = 40;

/// Why a density could not be approximated.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ApproximationError {
    /// The range is empty or not finite.
    #[error("the range from {min} to {max} is empty or not finite")]
    Range {
        /// Its lower end.
        min: f64,
        /// Its upper end.
        max: f64,
    },
    /// The threshold is not a positive number.
    #[error("the threshold {0} must be greater than 0")]
    Threshold(f64),
    /// The density is negative or not finite.
    #[error("the density at {at} is {density}: it must be finite and not negative")]
    Density {
        /// Where.
        at: f64,
        /// The value there.
        density: f64,
    },
    /// The density varies by the threshold or more however short the interval.
    #[error(
        "the density jumps by the threshold or more at {at}: raise the threshold or split the range there"
    )]
    Jump {
        /// Where.
        at: f64,
    },
    /// The density is zero all over the range.
    #[error("the density is zero everywhere between min and max")]
    Nothing,
}

/// A piece of the range: its ends, the least and greatest density seen, and the integral.
#[derive(Clone, Copy)]
struct Piece {
    min: f64,
    max: f64,
    least: f64,
    greatest: f64,
    mass: f64,
}

/// The weighted distribution that follows `density` over `[min, max]` to within `threshold`.
///
/// The density need not integrate to 1: the probabilities are scaled to. It is looked at in nine points of
/// each piece, so it should be monotone between neighbouring points (about a six-hundredth of the range at
/// the coarsest); a narrower spike can be missed, a jump is an error.
///
/// # Errors
/// When the arguments do not describe a density, or when it jumps.
///
/// # Examples
/// ```
/// use waylay_dist::{Dist, approximate};
///
/// let triangle = approximate(|x| 2.0 * x, 0.0, 1.0, 0.25)?;
/// assert!(Dist::new(&triangle).is_ok());
/// # Ok::<(), waylay_dist::ApproximationError>(())
/// ```
pub fn approximate(
    density: impl Fn(f64) -> f64,
    min: f64,
    max: f64,
    threshold: f64,
) -> Result<Spec, ApproximationError> {
    let width = max - min;
    if !(width.is_finite() && width > 0.0) {
        return Err(ApproximationError::Range { min, max });
    }
    if threshold.is_nan() || threshold <= 0.0 {
        return Err(ApproximationError::Threshold(threshold));
    }
    let end = |i: usize| if i == PIECES { max } else { min + width * (i as f64 / PIECES as f64) };
    let mut pieces = Vec::new();
    for i in 0..PIECES {
        divide(&density, end(i), end(i + 1), threshold, DEPTH, &mut pieces)?;
    }
    let pieces = join(pieces, threshold);
    let total: f64 = pieces.iter().map(|piece| piece.mass).sum();
    if total <= 0.0 {
        return Err(ApproximationError::Nothing);
    }
    let interval = |piece: &Piece| Interval {
        min: Value::Float(piece.min),
        max: Value::Float(piece.max),
        p: piece.mass / total,
    };
    Ok(Spec::Weighted(pieces.iter().map(interval).collect()))
}

/// Halves `[min, max]` until the density varies by less than the threshold in every part.
fn divide(
    density: &impl Fn(f64) -> f64,
    min: f64,
    max: f64,
    threshold: f64,
    depth: u32,
    pieces: &mut Vec<Piece>,
) -> Result<(), ApproximationError> {
    let mut seen = [0.0; POINTS];
    for (i, seen) in seen.iter_mut().enumerate() {
        let at = min + (max - min) * (i as f64 / (POINTS - 1) as f64);
        let value = density(at);
        if !(value.is_finite() && value >= 0.0) {
            return Err(ApproximationError::Density { at, density: value });
        }
        *seen = value;
    }
    let least = seen.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = seen.iter().copied().fold(0.0, f64::max);
    if greatest - least < threshold {
        pieces.push(Piece { min, max, least, greatest, mass: simpson(&seen, max - min) });
        return Ok(());
    }
    let middle = min + (max - min) / 2.0;
    if depth == 0 || middle <= min || middle >= max {
        return Err(ApproximationError::Jump { at: middle });
    }
    divide(density, min, middle, threshold, depth - 1, pieces)?;
    divide(density, middle, max, threshold, depth - 1, pieces)
}

/// The integral over equally spaced points, by Simpson's rule (their number is odd).
fn simpson(seen: &[f64; POINTS], width: f64) -> f64 {
    let weight = |i: usize| match i {
        0 => 1.0,
        i if i == POINTS - 1 => 1.0,
        i if i % 2 == 1 => 4.0,
        _ => 2.0,
    };
    let sum: f64 = seen.iter().enumerate().map(|(i, value)| weight(i) * value).sum();
    sum * width / (3 * (POINTS - 1)) as f64
}

/// Joins neighbours for as long as Eq. 1 holds over both: halving leaves more pieces than needed.
fn join(pieces: Vec<Piece>, threshold: f64) -> Vec<Piece> {
    let mut joined: Vec<Piece> = Vec::new();
    for piece in pieces {
        if let Some(last) = joined.last_mut() {
            let (least, greatest) = (last.least.min(piece.least), last.greatest.max(piece.greatest));
            if greatest - least < threshold {
                *last =
                    Piece { min: last.min, max: piece.max, least, greatest, mass: last.mass + piece.mass };
                continue;
            }
        }
        joined.push(piece);
    }
    joined
}
