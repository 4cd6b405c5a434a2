//! Checked numbers: finite, in one unit, exact when whole.

use std::time::Duration;

use crate::duration::{format_duration, parse_duration};
use crate::problem::{Place, Problem, ProblemKind, Unit};
use crate::spec::Value;

/// A finite number. Durations are whole nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Quantity {
    Int(i64),
    Float(f64),
}

impl Quantity {
    fn read(value: &Value) -> Result<(Self, Unit), ProblemKind> {
        match value {
            Value::Int(value) => Ok((Self::Int(*value), Unit::Number)),
            Value::Float(value) if value.is_finite() => Ok((Self::Float(*value), Unit::Number)),
            Value::Float(value) => Err(ProblemKind::NotFinite(*value)),
            // `parse_duration` admits at most i64::MAX nanoseconds.
            Value::Text(text) => Ok((Self::Int(parse_duration(text)?.as_nanos() as i64), Unit::Duration)),
        }
    }

    pub(crate) fn as_f64(self) -> f64 {
        match self {
            Self::Int(value) => value as f64,
            Self::Float(value) => value,
        }
    }

    /// The least whole number that is not below; the ends of the 64-bit range stand for what is beyond.
    pub(crate) fn ceil(self) -> i64 {
        match self {
            Self::Int(value) => value,
            Self::Float(value) => value.ceil() as i64,
        }
    }

    /// The greatest whole number that is not above.
    pub(crate) fn floor(self) -> i64 {
        match self {
            Self::Int(value) => value,
            Self::Float(value) => value.floor() as i64,
        }
    }

    fn is_above(self, other: Self) -> bool {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => a > b,
            (a, b) => a.as_f64() > b.as_f64(),
        }
    }
}

/// A closed range that holds at least one value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub(crate) min: Quantity,
    pub(crate) max: Quantity,
}

impl Range {
    /// The whole numbers of the range; where it holds none, the one nearest to its lower end.
    pub(crate) fn ints(self) -> (i64, i64) {
        let (first, last) = (self.min.ceil(), self.max.floor());
        if first <= last {
            (first, last)
        } else {
            let nearest = self.min.as_f64().round() as i64;
            (nearest, nearest)
        }
    }

    pub(crate) fn floats(self) -> (f64, f64) {
        (self.min.as_f64(), self.max.as_f64())
    }
}

/// Reads the values of one distribution and collects what is wrong with them.
#[derive(Default)]
pub(crate) struct Check {
    unit: Option<Unit>,
    problems: Vec<Problem>,
    /// Set while the keys of one interval are read.
    pub(crate) interval: Option<usize>,
}

impl Check {
    pub(crate) fn problem(&mut self, key: impl Into<Option<&'static str>>, kind: ProblemKind) {
        self.problems.push(Problem { place: Place { interval: self.interval, key: key.into() }, kind });
    }

    pub(crate) fn quantity(&mut self, key: &'static str, value: &Value) -> Option<Quantity> {
        match Quantity::read(value) {
            Ok((quantity, found)) => {
                // The first value of the distribution decides the unit.
                let expected = *self.unit.get_or_insert(found);
                if found == expected {
                    return Some(quantity);
                }
                self.problem(key, ProblemKind::MixedUnits { expected, found });
            }
            Err(kind) => self.problem(key, kind),
        }
        None
    }

    pub(crate) fn range(&mut self, min: &Value, max: &Value) -> Option<Range> {
        let lower = self.quantity("min", min);
        let upper = self.quantity("max", max);
        let range = Range { min: lower?, max: upper? };
        if range.min.is_above(range.max) {
            self.problem("min", ProblemKind::MinAboveMax { min: min.clone(), max: max.clone() });
            return None;
        }
        if !(range.max.as_f64() - range.min.as_f64()).is_finite() {
            self.problem("max", ProblemKind::TooWide);
            return None;
        }
        Some(range)
    }

    /// A finite number that has no unit of its own: a probability or a rate.
    pub(crate) fn finite(&mut self, key: &'static str, value: f64) -> Option<f64> {
        if value.is_finite() {
            return Some(value);
        }
        self.problem(key, ProblemKind::NotFinite(value));
        None
    }

    /// A number of the distribution's unit as the user would write it.
    pub(crate) fn in_words(&self, number: f64) -> Value {
        match self.unit() {
            Unit::Number => Value::Float(number),
            Unit::Duration => Value::Text(format_duration(Duration::from_nanos(number as u64))),
        }
    }

    pub(crate) fn unit(&self) -> Unit {
        self.unit.unwrap_or(Unit::Number)
    }

    pub(crate) fn into_problems(self) -> Vec<Problem> {
        self.problems
    }
}
