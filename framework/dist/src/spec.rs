//! What the user wrote: a distribution before it is checked.
//!
//! ```toml
//! batch = { uniform = { min = 1, max = 64 } }
//! size  = { gaussian = { mean = 100, sigma = 15, min = 0 } }
//! pause = { exponential = { min = "0s", max = "5ms" } }
//! kind  = { weighted = [{ min = 0, max = 0, p = 0.9 }, { min = 1, max = 7, p = 0.1 }] }
//! depth = 3
//! ```
//!
//! A plain value is short for a uniform distribution whose ends are equal. A [`Spec`] may be nonsense;
//! [`Dist::new`](crate::Dist::new) tells.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, de};

/// A number or a duration as it stands in the file.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A whole number.
    Int(i64),
    /// A number with a fraction or an exponent.
    Float(f64),
    /// A duration, not yet read.
    Text(String),
}

/// A distribution as it stands in the file.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spec {
    /// Every value from min to max alike, both included.
    Uniform(Uniform),
    /// The bell curve, cut off at min and max where given.
    Gaussian(Gaussian),
    /// A decreasing exponential curve from min to max.
    Exponential(Exponential),
    /// Intervals, each chosen with its own probability and uniform inside.
    Weighted(Vec<Interval>),
}

/// The parameters of [`Spec::Uniform`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Uniform {
    /// The least value.
    pub min: Value,
    /// The greatest value.
    pub max: Value,
}

/// The parameters of [`Spec::Gaussian`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gaussian {
    /// The middle of the curve (before it is cut off).
    pub mean: Value,
    /// The standard deviation (before the curve is cut off).
    pub sigma: Value,
    /// The least value; without it, unbounded for numbers and zero for durations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<Value>,
    /// The greatest value; without it, unbounded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<Value>,
}

/// The parameters of [`Spec::Exponential`].
///
/// Without `mean` and `rate` the curve falls to a thousandth of its height between min and max.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exponential {
    /// The least and most likely value.
    pub min: Value,
    /// The greatest and least likely value.
    pub max: Value,
    /// The average of the values drawn: above min and below the middle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<Value>,
    /// How steeply the curve falls: by a factor e over 1/rate, per second for durations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
}

/// One interval of [`Spec::Weighted`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// The least value.
    pub min: Value,
    /// The greatest value.
    pub max: Value,
    /// The probability of this interval.
    pub p: f64,
}

/// A text that does not have the shape of a distribution.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SpecError(String);

impl Spec {
    /// The names of the distributions, as written in TOML.
    pub const NAMES: [&'static str; 4] = ["uniform", "gaussian", "exponential", "weighted"];

    /// Always this value.
    pub fn fixed(value: Value) -> Self {
        Self::Uniform(Uniform { min: value.clone(), max: value })
    }

    /// The distribution's name, as written in TOML.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Uniform(_) => "uniform",
            Self::Gaussian(_) => "gaussian",
            Self::Exponential(_) => "exponential",
            Self::Weighted(_) => "weighted",
        }
    }
}

/// Reads a TOML value, such as `{ uniform = { min = 1, max = 64 } }` or `5`.
impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let error = |error: toml::de::Error| SpecError(error.message().to_owned());
        let value = toml::de::ValueDeserializer::parse(text.trim()).map_err(error)?;
        Self::deserialize(value).map_err(error)
    }
}

/// Writes the TOML value on one line, in the order in which people write it.
impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{ {} = ", self.name())?;
        match self {
            Self::Uniform(Uniform { min, max }) => write!(f, "{{ min = {min}, max = {max} }}")?,
            Self::Gaussian(Gaussian { mean, sigma, min, max }) => {
                write!(f, "{{ mean = {mean}, sigma = {sigma}")?;
                for (key, value) in [("min", min), ("max", max)] {
                    if let Some(value) = value {
                        write!(f, ", {key} = {value}")?;
                    }
                }
                f.write_str(" }")?;
            }
            Self::Exponential(Exponential { min, max, mean, rate }) => {
                write!(f, "{{ min = {min}, max = {max}")?;
                if let Some(mean) = mean {
                    write!(f, ", mean = {mean}")?;
                }
                if let Some(rate) = rate {
                    write!(f, ", rate = {}", Value::Float(*rate))?;
                }
                f.write_str(" }")?;
            }
            Self::Weighted(intervals) => {
                f.write_str("[")?;
                for (i, Interval { min, max, p }) in intervals.iter().enumerate() {
                    let comma = if i == 0 { "" } else { ", " };
                    write!(f, "{comma}{{ min = {min}, max = {max}, p = {} }}", Value::Float(*p))?;
                }
                f.write_str("]")?;
            }
        }
        f.write_str(" }")
    }
}

/// Writes the TOML value.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => value.fmt(f),
            Self::Float(value) => toml::Value::from(*value).fmt(f),
            Self::Text(text) => toml::Value::from(text.as_str()).fmt(f),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl de::Visitor<'_> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number or a duration such as \"5ms\"")
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        i64::try_from(value).map(Value::Int).map_err(|_| E::custom(format!("{value} does not fit 64 bits")))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }
}

impl<'de> Deserialize<'de> for Spec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Spec;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a distribution such as { uniform = { min = 1, max = 64 } }, or a plain value")
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Spec, E> {
                ValueVisitor.visit_i64(value).map(Spec::fixed)
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Spec, E> {
                ValueVisitor.visit_u64(value).map(Spec::fixed)
            }

            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Spec, E> {
                ValueVisitor.visit_f64(value).map(Spec::fixed)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Spec, E> {
                ValueVisitor.visit_str(text).map(Spec::fixed)
            }

            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Spec, A::Error> {
                let Some(name) = map.next_key::<String>()? else {
                    return Err(de::Error::custom(format!(
                        "no distribution: one of {}",
                        Spec::NAMES.join(", ")
                    )));
                };
                let spec = match name.as_str() {
                    "uniform" => Spec::Uniform(map.next_value()?),
                    "gaussian" => Spec::Gaussian(map.next_value()?),
                    "exponential" => Spec::Exponential(map.next_value()?),
                    "weighted" => Spec::Weighted(map.next_value()?),
                    other => return Err(de::Error::unknown_variant(other, &Spec::NAMES)),
                };
                match map.next_key::<String>()? {
                    None => Ok(spec),
                    Some(second) => {
                        Err(de::Error::custom(format!("`{name}` and `{second}`: name one distribution")))
                    }
                }
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}
