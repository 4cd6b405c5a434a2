//! Which night a moment belongs to: nights begin at noon, so that what starts at 22:00 and what starts at 03:00 are one.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

/// The date on whose evening the night begins. `zone` is that of the people who sleep.
pub fn night_of(at: Timestamp, zone: &TimeZone) -> Date {
    let local = zone.to_datetime(at);
    // By the clock on the wall: a night in which the clock is changed is still one night.
    local.checked_sub(Span::new().hours(12)).map_or(local.date(), |shifted| shifted.date())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn night(text: &str) -> String {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let at: jiff::civil::DateTime = text.parse().unwrap();
        night_of(at.to_zoned(zone.clone()).unwrap().timestamp(), &zone).to_string()
    }

    #[test]
    fn an_evening_and_the_next_morning_are_one_night() {
        assert_eq!(night("2026-11-16T22:00"), "2026-11-16");
        assert_eq!(night("2026-11-17T03:00"), "2026-11-16");
        assert_eq!(night("2026-11-17T11:59"), "2026-11-16");
        assert_eq!(night("2026-11-17T12:00"), "2026-11-17");
    }

    #[test]
    fn a_change_of_the_clock_does_not_split_a_night() {
        // The hour from 2 to 3 is missing on 29 March and twice there on 25 October 2026.
        for (evening, morning, date) in [
            ("2026-03-28T12:00", "2026-03-29T11:59", "2026-03-28"),
            ("2026-10-24T12:00", "2026-10-25T11:59", "2026-10-24"),
        ] {
            assert_eq!((night(evening).as_str(), night(morning).as_str()), (date, date));
        }
    }
}
