//! The types that a single TOML value can be read as, and what is said when it cannot.

use std::path::PathBuf;
use std::time::Duration;

use toml::Spanned;
use toml::de::DeValue;
use waylay_control_protocol::{Level, Memory, Patch};
use waylay_dist::{Seed, Value, parse_duration};
use waylay_evidence::DumpSize;

use super::bytes::ByteSize;
use super::diagnostic::{Diagnostic, Findings};
use super::dump::DumpFormat;
use super::mode::{FileMode, Mode};
use super::pattern::Pattern;
use super::source::{At, Span};
use super::strict::{IdleTimeouts, Minimizing, Patches};
use super::suggestion;

/// Why a value was refused.
pub enum Refusal {
    /// It is of another type.
    Type,
    /// It is of the right type and cannot be read.
    Value(String),
    /// It is of the right type and cannot be read; the second text says what to do about it.
    Help(String, String),
}

/// A type that can be read from one TOML value.
pub trait FromToml: Sized {
    /// What is expected, with its article.
    const EXPECTED: &'static str;

    /// Reads it.
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal>;
}

/// Reads one value, or reports why it cannot be read.
pub(super) fn read_value<T: FromToml>(
    value: &Spanned<DeValue<'_>>,
    key: Option<&str>,
    findings: &Findings,
) -> Option<At<T>> {
    let span = Span::from(value.span());
    match T::from_toml(value.get_ref()) {
        Ok(read) => return Some(At::new(read, span)),
        Err(Refusal::Type) => findings.add(wrong_type(key, value, T::EXPECTED)),
        Err(Refusal::Value(message)) => findings.add(Diagnostic::error(span, message)),
        Err(Refusal::Help(message, help)) => findings.add(Diagnostic::error(span, message).help(help)),
    }
    None
}

pub(super) fn wrong_type(key: Option<&str>, value: &Spanned<DeValue<'_>>, expected: &str) -> Diagnostic {
    let subject = key.map(|key| format!("`{key}`")).unwrap_or_else(|| "this".to_owned());
    let message = format!("{subject} must be {expected}, not {}", kind(value.get_ref()));
    Diagnostic::error(value.span().into(), message)
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

fn text<'v>(value: &'v DeValue<'_>) -> Result<&'v str, Refusal> {
    value.as_str().ok_or(Refusal::Type)
}

/// A whole number of any size that the type can hold.
fn whole<T: TryFrom<i128>>(value: &DeValue<'_>) -> Result<T, Refusal> {
    let integer = value.as_integer().ok_or(Refusal::Type)?;
    i128::from_str_radix(integer.as_str(), integer.radix())
        .ok()
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| match integer.as_str().strip_prefix('-') {
            Some(_) => Refusal::Value(format!("{integer} is too small")),
            None => Refusal::Value(format!("{integer} is too large")),
        })
}

impl FromToml for bool {
    const EXPECTED: &'static str = "true or false";

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal> {
        value.as_bool().ok_or(Refusal::Type)
    }
}

impl FromToml for String {
    const EXPECTED: &'static str = "a text";

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal> {
        text(value).map(str::to_owned)
    }
}

impl FromToml for FileMode {
    const EXPECTED: &'static str = "a text such as \"0600\"";

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal> {
        text(value)?.parse().map_err(Refusal::Value)
    }
}

impl FromToml for PathBuf {
    const EXPECTED: &'static str = "a path";

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal> {
        match text(value)? {
            "" => Err(Refusal::Value("a path cannot be empty".to_owned())),
            path => Ok(Self::from(path)),
        }
    }
}

impl FromToml for u32 {
    const EXPECTED: &'static str = "a whole number";

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal> {
        whole(value)
    }
}

impl FromToml for u64 {
    const EXPECTED: &'static str = "a whole number";

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal> {
        whole(value)
    }
}

impl FromToml for f64 {
    const EXPECTED: &'static str = "a number";

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal> {
        match value {
            DeValue::Integer(_) => whole::<i64>(value).map(|number| number as f64),
            DeValue::Float(float) => {
                float.as_str().parse().map_err(|_| Refusal::Value(format!("{float} is not a number")))
            }
            _ => Err(Refusal::Type),
        }
    }
}

impl FromToml for Seed {
    const EXPECTED: &'static str = "a seed such as \"0x5eed\"";

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal> {
        match value {
            DeValue::Integer(_) => whole(value).map(Self::new),
            _ => text(value)?.parse().map_err(|error| Refusal::Value(format!("{error}"))),
        }
    }
}

impl FromToml for Duration {
    const EXPECTED: &'static str = "a duration such as \"30s\"";

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal> {
        match value {
            DeValue::Integer(number) => {
                Err(Refusal::Help(format!("{number} has no unit"), format!("did you mean \"{number}s\"?")))
            }
            _ => parse_duration(text(value)?).map_err(|error| Refusal::Value(error.to_string())),
        }
    }
}

impl FromToml for Minimizing {
    const EXPECTED: &'static str = "a duration such as \"5s\", or \"off\"";

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal> {
        match value {
            DeValue::String(text) if text.as_ref() == "off" => Ok(Self(None)),
            _ => Duration::from_toml(value).map(|time| Self(Some(time).filter(|time| !time.is_zero()))),
        }
    }
}

impl FromToml for ByteSize {
    const EXPECTED: &'static str = "a size such as \"512KiB\"";

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal> {
        match value {
            DeValue::Integer(number) => {
                Err(Refusal::Help(format!("{number} has no unit"), format!("did you mean \"{number}B\"?")))
            }
            _ => text(value)?.parse().map_err(|error| Refusal::Value(format!("{error}"))),
        }
    }
}

impl FromToml for Pattern {
    const EXPECTED: &'static str = "a test's name or a pattern such as \"channel-*\"";

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal> {
        match text(value)? {
            "" => Err(Refusal::Help("a name cannot be empty".to_owned(), "`*` is every test".to_owned())),
            text => Ok(Self::new(text)),
        }
    }
}

impl FromToml for Mode {
    const EXPECTED: &'static str = "a mode: \"free\", \"randomized\" or \"strict\"";

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal> {
        let text = text(value)?;
        Self::ALL.into_iter().find(|mode| mode.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name);
            Refusal::Help(format!("unknown mode `{text}`"), suggestion::help(text, &names))
        })
    }
}

impl FromToml for DumpFormat {
    const EXPECTED: &'static str = "a format of dumps: \"minidump\" or \"core\"";

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal> {
        let text = text(value)?;
        let format = Self::ALL.into_iter().find(|format| format.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name);
            Refusal::Help(format!("unknown format of dumps `{text}`"), suggestion::help(text, &names))
        })?;
        let refused = |reason| Refusal::Value(format!("a `{text}` cannot be written: {reason}"));
        format.available().map(|()| format).map_err(refused)
    }
}

impl FromToml for DumpSize {
    const EXPECTED: &'static str = "a size of dumps: \"none\", \"mini\", \"heap\" or \"full\"";

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal> {
        let text = text(value)?;
        Self::ALL.into_iter().find(|size| size.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name);
            Refusal::Help(format!("unknown size of dumps `{text}`"), suggestion::help(text, &names))
        })
    }
}

impl FromToml for IdleTimeouts {
    const EXPECTED: &'static str = "true or false";

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal> {
        match value {
            DeValue::String(text) => match text.as_ref() {
                "idle" => Ok(Self(true)),
                "choice" => Ok(Self(false)),
                other => Err(Refusal::Help(
                    format!("unknown rule `{other}`"),
                    suggestion::help(other, &["choice", "idle"]),
                )),
            },
            _ => bool::from_toml(value).map(Self),
        }
    }
}

impl FromToml for Patches {
    const EXPECTED: &'static str = "\"none\", \"memory=LIBRARY\" or a list of such texts";

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal> {
        let one = |text: &str| {
            text.parse::<Patch>().map_err(|why| Refusal::Value(format!("unknown `{text}`: {why}")))
        };
        match value {
            DeValue::Boolean(wanted) => Ok(Self((!wanted).then_some(Patch::None).into_iter().collect())),
            DeValue::Array(list) => {
                list.iter().map(|entry| one(text(entry.get_ref())?)).collect::<Result<_, _>>().map(Self)
            }
            _ => one(text(value)?).map(|patch| Self(vec![patch])),
        }
    }
}

impl FromToml for Memory {
    const EXPECTED: &'static str = "when others see a store: \"sc\" or \"tso\"";

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal> {
        let text = text(value)?;
        text.parse().map_err(|refused| {
            Refusal::Help(refused, suggestion::help(text, &[Memory::Sc.name(), Memory::Tso.name()]))
        })
    }
}

impl FromToml for Level {
    const EXPECTED: &'static str = "what is a step: \"sync\", \"atomics\", \"auto\" or \"memory\"";

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal> {
        let text = text(value)?;
        Self::ALL.into_iter().find(|level| level.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name);
            Refusal::Help(format!("unknown level `{text}`"), suggestion::help(text, &names))
        })
    }
}

impl FromToml for Value {
    const EXPECTED: &'static str = "a number or a duration such as \"5ms\"";

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal> {
        match value {
            DeValue::Integer(_) => whole(value).map(Self::Int),
            DeValue::Float(_) => f64::from_toml(value).map(Self::Float),
            DeValue::String(text) => Ok(Self::Text(text.to_string())),
            _ => Err(Refusal::Type),
        }
    }
}
