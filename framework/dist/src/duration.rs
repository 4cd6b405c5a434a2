//! Durations as text: `5ms`, `1.5s`, `2h30m`.
//!
//! One notation for every file and flag. Reading is exact to the nanosecond, and what
//! [`format_duration`] writes reads back as the same duration.

use std::time::Duration;

/// A text that is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Nothing to read.
    #[error("a duration is empty: write a number and a unit, such as \"5ms\"")]
    Empty,
    /// A number stands without a unit.
    #[error("`{text}` has no unit: write ns, us, ms, s, m, h or d after the number")]
    NoUnit {
        /// The text as written.
        text: String,
    },
    /// The unit is none of ours.
    #[error("`{unit}` is not a unit of time: use ns, us, ms, s, m, h or d")]
    UnknownUnit {
        /// The unit as written.
        unit: String,
    },
    /// Something that is neither a number nor a unit.
    #[error("`{text}` is not a duration: write a number and a unit, such as \"5ms\" or \"1m30s\"")]
    Malformed {
        /// The text as written.
        text: String,
    },
    /// Longer than can be counted in nanoseconds (about 292 years).
    #[error("`{text}` is too long: at most 106751 days")]
    TooLong {
        /// The text as written.
        text: String,
    },
}

/// Units from long to short, in nanoseconds.
const UNITS: [(&str, u64); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Reads a duration: one or more of number and unit, such as `250us`, `1.5s` or `1m30s`; `0` needs no unit.
///
/// At most `i64::MAX` nanoseconds, so that a duration can always be handled as an integer.
///
/// # Errors
/// When the text is not of that form or too long.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let malformed = || DurationError::Malformed { text: text.to_owned() };
    let too_long = || DurationError::TooLong { text: text.to_owned() };
    let mut rest = text.trim();
    match rest {
        "" => return Err(DurationError::Empty),
        "0" => return Ok(Duration::ZERO),
        _ => {}
    }
    let mut nanoseconds: u64 = 0;
    while !rest.is_empty() {
        let (number, after) = split_while(rest, |c| c.is_ascii_digit() || c == '.' || c == '_');
        let (unit, after) = split_while(after, |c| !c.is_ascii_digit() && c != ' ');
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        if whole.is_empty() || fraction.is_empty() || fraction.contains('.') {
            return Err(malformed());
        }
        if unit.is_empty() {
            return Err(DurationError::NoUnit { text: text.to_owned() });
        }
        let canonical = if unit == "µs" || unit == "μs" { "us" } else { unit };
        let (_, scale) = UNITS
            .iter()
            .find(|(name, _)| *name == canonical)
            .ok_or_else(|| DurationError::UnknownUnit { unit: unit.to_owned() })?;
        let whole: u64 = whole.replace('_', "").parse().map_err(|_| too_long())?;
        let part = whole
            .checked_mul(*scale)
            .and_then(|whole| whole.checked_add(fraction_of(fraction, *scale)))
            .ok_or_else(too_long)?;
        nanoseconds = nanoseconds.checked_add(part).ok_or_else(too_long)?;
        rest = after.trim_start();
    }
    if i64::try_from(nanoseconds).is_err() {
        return Err(too_long());
    }
    Ok(Duration::from_nanos(nanoseconds))
}

/// `0.digits` of a unit, in nanoseconds; what is below a nanosecond is cut off.
fn fraction_of(digits: &str, scale: u64) -> u64 {
    // In integers, because a binary fraction would turn 0.3ms into 299999ns. Eighteen digits are finer than
    // a nanosecond of any unit and, times the longest, fit 128 bits.
    let (numerator, denominator) = digits
        .bytes()
        .filter(u8::is_ascii_digit)
        .take(18)
        .fold((0, 1), |(n, d): (u128, u128), digit| (n * 10 + u128::from(digit - b'0'), d * 10));
    (numerator * u128::from(scale) / denominator) as u64
}

fn split_while(text: &str, accept: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !accept(c)).unwrap_or(text.len()))
}

/// Writes a duration so that [`parse_duration`] reads the same one: `90s` as `1m30s`.
pub fn format_duration(duration: Duration) -> String {
    let mut nanoseconds = duration.as_nanos();
    if nanoseconds == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    for (unit, scale) in UNITS {
        let count = nanoseconds / u128::from(scale);
        if count > 0 {
            text.push_str(&format!("{count}{unit}"));
            nanoseconds %= u128::from(scale);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_unit() {
        for (text, nanoseconds) in [
            ("0", 0),
            ("0s", 0),
            ("1ns", 1),
            ("250us", 250_000),
            ("250µs", 250_000),
            ("5ms", 5_000_000),
            ("0.3ms", 300_000),
            ("1.5s", 1_500_000_000),
            ("2m", 120_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("1h 30m", 5_400_000_000_000),
            ("1_000ns", 1_000),
            ("0.000000001s", 1),
            ("0.0000000019999999999999999999s", 1),
            ("106751d", 9_223_286_400_000_000_000),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_nanos(nanoseconds)), "{text}");
        }
    }

    #[test]
    fn says_what_is_wrong() {
        assert_eq!(parse_duration(" "), Err(DurationError::Empty));
        assert_eq!(parse_duration("5"), Err(DurationError::NoUnit { text: "5".into() }));
        assert_eq!(parse_duration("5 ms"), Err(DurationError::NoUnit { text: "5 ms".into() }));
        assert_eq!(parse_duration("5sec"), Err(DurationError::UnknownUnit { unit: "sec".into() }));
        for text in ["ms", "-5ms", ".5s", "5.s", "1.2.3s", "five"] {
            assert_eq!(parse_duration(text), Err(DurationError::Malformed { text: text.into() }));
        }
        for text in ["106752d", "99999999999999999999s", "18446744073709551615ns", "213503d"] {
            assert_eq!(parse_duration(text), Err(DurationError::TooLong { text: text.into() }));
        }
    }

    #[test]
    fn writes_the_longest_units_first() {
        assert_eq!(format_duration(Duration::ZERO), "0s");
        assert_eq!(format_duration(Duration::from_millis(1500)), "1s500ms");
        assert_eq!(format_duration(Duration::from_secs(90)), "1m30s");
        assert_eq!(format_duration(Duration::new(86_400, 1)), "1d1ns");
    }
}
