//! What single values of the configuration are read as.

use std::net::SocketAddr;

use jiff::civil::{Date, Time, Weekday};
use jiff::tz::TimeZone;
use waylay_driver::config::reading::{DeValue, FromToml, Refusal};
use waylay_driver::config::suggestion;

/// What the standard types are wrapped in: reading is the driver's trait.
pub(super) struct Read<T>(pub(super) T);

fn text<'v>(value: &'v DeValue<'_>) -> Result<&'v str, Refusal> {
    value.as_str().ok_or(Refusal::Type)
}

impl FromToml for Read<Time> {
    const EXPECTED: &'static str = "a time of the day such as \"22:00\"";

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal> {
        let text = text(value)?;
        // Only the form that everybody reads the same way.
        let parsed = if text.contains(':') { text.parse().ok() } else { None };
        parsed
            .map(Read)
            .ok_or_else(|| Refusal::Value(format!("`{text}` is no time of the day such as \"22:00\"")))
    }
}

const DAYS: [(&str, Weekday); 7] = [
    ("monday", Weekday::Monday),
    ("tuesday", Weekday::Tuesday),
    ("wednesday", Weekday::Wednesday),
    ("thursday", Weekday::Thursday),
    ("friday", Weekday::Friday),
    ("saturday", Weekday::Saturday),
    ("sunday", Weekday::Sunday),
];

/// All of them.
pub(super) fn every_day() -> Vec<Weekday> {
    DAYS.map(|(_, day)| day).to_vec()
}

impl FromToml for Read<Weekday> {
    const EXPECTED: &'static str = "a weekday such as \"mon\"";

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal> {
        let written = text(value)?;
        let lower = written.to_lowercase();
        let found = DAYS.iter().find(|(name, _)| *name == lower || name[..3] == lower);
        found.map(|(_, day)| Read(*day)).ok_or_else(|| {
            let names = DAYS.map(|(name, _)| &name[..3]);
            Refusal::Help(format!("unknown weekday `{written}`"), suggestion::help(&lower, &names))
        })
    }
}

impl FromToml for Read<TimeZone> {
    const EXPECTED: &'static str = "a time zone such as \"Europe/Berlin\"";

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal> {
        let text = text(value)?;
        TimeZone::get(text).map(Read).map_err(|error| Refusal::Value(error.to_string()))
    }
}

impl FromToml for Read<Date> {
    const EXPECTED: &'static str = "a date such as \"2026-12-31\"";

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal> {
        let written = match value {
            DeValue::Datetime(date) => date.to_string(),
            _ => text(value)?.to_owned(),
        };
        written
            .parse()
            .map(Read)
            .map_err(|_| Refusal::Value(format!("`{written}` is no date such as \"2026-12-31\"")))
    }
}

impl FromToml for Read<SocketAddr> {
    const EXPECTED: &'static str = "an address with a port such as \"127.0.0.1:7979\"";

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal> {
        let text = text(value)?;
        text.parse().map(Read).map_err(|_| {
            Refusal::Value(format!("`{text}` is no address with a port such as \"127.0.0.1:7979\""))
        })
    }
}
