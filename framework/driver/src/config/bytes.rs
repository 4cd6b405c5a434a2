//! Sizes in bytes as text: `512KiB`, `10MB`, `1.5GiB`.

use std::fmt;
use std::str::FromStr;

/// A number of bytes.
///
/// Printed in the largest binary unit that divides it, so that it reads back as the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

/// A text that is not a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ByteSizeError {
    /// Not a number followed by a unit.
    #[error("`{0}` is not a size: write a number and a unit, such as \"512KiB\"")]
    Malformed(String),
    /// The unit is none of ours.
    #[error("`{0}` is not a unit of size: use B, KiB, MiB, GiB, TiB, KB, MB, GB or TB")]
    UnknownUnit(String),
    /// More than 64 bits can count.
    #[error("`{0}` is too large")]
    TooLarge(String),
}

/// Binary units first and from large to small, which is the order in which they are tried for printing.
const UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
];

impl FromStr for ByteSize {
    type Err = ByteSizeError;

    fn from_str(text: &str) -> Result<Self, ByteSizeError> {
        let malformed = || ByteSizeError::Malformed(text.to_owned());
        let too_large = || ByteSizeError::TooLarge(text.to_owned());
        let trimmed = text.trim();
        let split =
            trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).ok_or_else(malformed)?;
        let (number, unit) = trimmed.split_at(split);
        let unit = unit.trim_start();
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        if whole.is_empty() || fraction.is_empty() || fraction.len() > 9 {
            return Err(malformed());
        }
        let scale = UNITS
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(unit))
            .map(|(_, scale)| *scale)
            .ok_or_else(|| ByteSizeError::UnknownUnit(unit.to_owned()))?;
        let whole: u64 = whole.replace('_', "").parse().map_err(|_| too_large())?;
        let numerator: u64 = fraction.parse().map_err(|_| malformed())?;
        let part = u128::from(numerator) * u128::from(scale) / 10_u128.pow(fraction.len() as u32);
        whole
            .checked_mul(scale)
            .and_then(|whole| whole.checked_add(part as u64))
            .map(Self)
            .ok_or_else(too_large)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, scale) = UNITS
            .into_iter()
            .find(|(_, scale)| self.0 >= *scale && self.0.is_multiple_of(*scale))
            .unwrap_or(("B", 1));
        write!(f, "{}{unit}", self.0 / scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_units() {
        for (text, bytes) in [
            ("0B", 0),
            ("512KiB", 512 << 10),
            ("10MiB", 10 << 20),
            ("1.5 GiB", 3 << 29),
            ("10mb", 10_000_000),
            ("1_000B", 1000),
            ("1TiB", 1 << 40),
        ] {
            assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
        }
    }

    #[test]
    fn says_what_is_wrong() {
        for text in ["", "5", "KiB", ".5KiB", "5.KiB", "1.2.3KiB", "-1B"] {
            assert_eq!(text.parse::<ByteSize>(), Err(ByteSizeError::Malformed(text.into())), "{text}");
        }
        assert_eq!("5kb/s".parse::<ByteSize>(), Err(ByteSizeError::UnknownUnit("kb/s".into())));
        assert_eq!("16777216TiB".parse::<ByteSize>(), Err(ByteSizeError::TooLarge("16777216TiB".into())));
        assert_eq!(
            "99999999999999999999B".parse::<ByteSize>(),
            Err(ByteSizeError::TooLarge("99999999999999999999B".into()))
        );
    }

    #[test]
    fn prints_what_reads_back() {
        for bytes in [0, 1, 1000, 1024, 1 << 20, (1 << 20) + 1, u64::MAX] {
            assert_eq!(ByteSize(bytes).to_string().parse(), Ok(ByteSize(bytes)));
        }
        assert_eq!(ByteSize(512 << 10).to_string(), "512KiB");
    }
}
