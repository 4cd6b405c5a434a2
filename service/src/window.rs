//! When campaigns may run: from one time of the day to another, on some weekdays, by the clock on the wall. Pure.
//!
//! A window belongs to the day on which it begins: `22:00` to `06:00` on Fridays ends on Saturday morning. Where the
//! clock is changed, a time that the wall does not show begins when it would have (02:30 becomes 03:30 in spring), a time
//! that it shows twice begins and ends the first time; so a night is an hour shorter or longer and never lost or doubled.

use jiff::civil::{Date, Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

/// From a time to a time, on some days.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// When it begins.
    pub from: Time,
    /// When it ends; on the next day when it is not later than `from`.
    pub to: Time,
    /// The days on which it begins.
    pub days: Vec<Weekday>,
}

/// All windows. None at all means always.
#[derive(Clone, Debug, PartialEq)]
pub struct Windows {
    /// The windows; they may overlap.
    pub list: Vec<Window>,
    /// Whose clock.
    pub zone: TimeZone,
}

/// How long to look ahead: every window that ever opens does so within a week and a day.
const DAYS_AHEAD: i64 = 8;

impl Window {
    /// The window that begins on that day; none when it does not, or when the clock is set forward over all of it.
    fn on(&self, day: Date, zone: &TimeZone) -> Option<(Timestamp, Timestamp)> {
        if !self.days.contains(&day.weekday()) {
            return None;
        }
        let last = if self.to <= self.from { day.tomorrow().ok()? } else { day };
        let at = |day: Date, time: Time| zone.to_timestamp(day.to_datetime(time)).ok();
        let (from, to) = (at(day, self.from)?, at(last, self.to)?);
        (from < to).then_some((from, to))
    }
}

impl Windows {
    /// The time until which campaigns may run, if they may now. [`Timestamp::MAX`] without windows.
    pub fn open_until(&self, now: Timestamp) -> Option<Timestamp> {
        if self.list.is_empty() {
            return Some(Timestamp::MAX);
        }
        let mut until = None;
        let mut at = now;
        // A window that another one continues is one with it.
        while let Some(end) = self.around(at).map(|(_, to)| to).filter(|end| Some(*end) > until) {
            until = Some(end);
            at = end;
            if end.duration_since(now).as_hours() > 24 * DAYS_AHEAD {
                break;
            }
        }
        until
    }

    /// The next time at which a window opens; none when none ever does.
    pub fn next_open(&self, now: Timestamp) -> Option<Timestamp> {
        self.spans(now).map(|(from, _)| from).filter(|from| *from > now).min()
    }

    /// The window that is open then and ends last.
    fn around(&self, at: Timestamp) -> Option<(Timestamp, Timestamp)> {
        self.spans(at).filter(|(from, to)| *from <= at && at < *to).max_by_key(|(_, to)| *to)
    }

    /// All windows from yesterday on.
    fn spans(&self, now: Timestamp) -> impl Iterator<Item = (Timestamp, Timestamp)> {
        let today = self.zone.to_datetime(now).date();
        (-1..=DAYS_AHEAD)
            .filter_map(move |days| today.checked_add(Span::new().days(days)).ok())
            .flat_map(move |day| self.list.iter().filter_map(move |window| window.on(day, &self.zone)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [Weekday; 7] = [
        Weekday::Monday,
        Weekday::Tuesday,
        Weekday::Wednesday,
        Weekday::Thursday,
        Weekday::Friday,
        Weekday::Saturday,
        Weekday::Sunday,
    ];

    fn windows(list: &[(&str, &str, &[Weekday])]) -> Windows {
        let list = list.iter().map(|(from, to, days)| Window {
            from: from.parse().unwrap(),
            to: to.parse().unwrap(),
            days: days.to_vec(),
        });
        Windows { list: list.collect(), zone: TimeZone::get("Europe/Berlin").unwrap() }
    }

    fn at(text: &str) -> Timestamp {
        text.parse::<jiff::Zoned>().map_or_else(|_| text.parse().unwrap(), |zoned| zoned.timestamp())
    }

    fn local(at: Timestamp) -> String {
        TimeZone::get("Europe/Berlin").unwrap().to_datetime(at).to_string()
    }

    #[test]
    fn a_night_spans_midnight() {
        let nightly = windows(&[("22:00", "06:00", &ALL)]);
        let open = |text: &str| nightly.open_until(at(text)).map(local);
        assert_eq!(open("2026-11-16T22:00[Europe/Berlin]").as_deref(), Some("2026-11-17T06:00:00"));
        assert_eq!(open("2026-11-17T05:59:59[Europe/Berlin]").as_deref(), Some("2026-11-17T06:00:00"));
        assert_eq!(open("2026-11-17T06:00[Europe/Berlin]"), None);
        assert_eq!(open("2026-11-17T21:59[Europe/Berlin]"), None);
        let next = nightly.next_open(at("2026-11-17T06:00[Europe/Berlin]")).map(local);
        assert_eq!(next.as_deref(), Some("2026-11-17T22:00:00"));
    }

    #[test]
    fn a_window_belongs_to_the_day_on_which_it_begins() {
        let friday = windows(&[("22:00", "06:00", &[Weekday::Friday])]);
        // 20 November 2026 is a Friday.
        assert!(friday.open_until(at("2026-11-21T05:00[Europe/Berlin]")).is_some());
        assert!(friday.open_until(at("2026-11-20T05:00[Europe/Berlin]")).is_none());
        let next = friday.next_open(at("2026-11-21T06:00[Europe/Berlin]")).map(local);
        assert_eq!(next.as_deref(), Some("2026-11-27T22:00:00"));
    }

    #[test]
    fn windows_that_touch_are_one() {
        let weekend =
            windows(&[("22:00", "06:00", &ALL), ("06:00", "22:00", &[Weekday::Saturday, Weekday::Sunday])]);
        let until = weekend.open_until(at("2026-11-20T23:00[Europe/Berlin]")).map(local);
        assert_eq!(until.as_deref(), Some("2026-11-23T06:00:00"));
    }

    #[test]
    fn the_same_time_twice_is_a_whole_day() {
        let always = windows(&[("00:00", "00:00", &ALL)]);
        let now = at("2026-11-16T12:00[Europe/Berlin]");
        assert!(always.open_until(now).unwrap().duration_since(now).as_hours() > 24 * 7);
    }

    #[test]
    fn without_windows_it_is_always_open() {
        assert_eq!(windows(&[]).open_until(at("2026-11-16T12:00Z")), Some(Timestamp::MAX));
        assert_eq!(windows(&[]).next_open(at("2026-11-16T12:00Z")), None);
    }

    #[test]
    fn the_night_in_spring_is_an_hour_shorter_and_in_autumn_an_hour_longer() {
        let nightly = windows(&[("22:00", "06:00", &ALL)]);
        for (evening, hours) in [
            ("2026-03-27T22:00[Europe/Berlin]", 8),
            ("2026-03-28T22:00[Europe/Berlin]", 7),
            ("2026-10-24T22:00[Europe/Berlin]", 9),
        ] {
            let from = at(evening);
            let length = nightly.open_until(from).unwrap().duration_since(from);
            assert_eq!(length.as_hours(), hours, "{evening}");
        }
    }

    #[test]
    fn times_that_the_wall_does_not_show_or_shows_twice() {
        // 02:00 to 03:00 is missing on 29 March: a window in it opens at 03:30, and one that lies in it whole is over
        // when it begins.
        let early = windows(&[("02:30", "05:00", &ALL)]);
        let next = early.next_open(at("2026-03-28T12:00[Europe/Berlin]")).map(local);
        assert_eq!(next.as_deref(), Some("2026-03-29T03:30:00"));
        let inside = windows(&[("02:10", "02:50", &ALL)]);
        let lengths: Vec<i64> = ["2026-03-27T12:00[Europe/Berlin]", "2026-03-28T12:00[Europe/Berlin]"]
            .map(|text| {
                let from = inside.next_open(at(text)).unwrap();
                inside.open_until(from).unwrap().duration_since(from).as_secs() / 60
            })
            .to_vec();
        assert_eq!(lengths, [40, 40]);
        // 02:00 to 03:00 comes twice on 25 October: the window is open once.
        let first = inside.next_open(at("2026-10-24T12:00[Europe/Berlin]")).unwrap();
        assert_eq!(first.to_string(), "2026-10-25T00:10:00Z");
        let next = inside.next_open(first).map(local);
        assert_eq!(next.as_deref(), Some("2026-10-26T02:10:00"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn at_every_moment_of_two_years_a_window_is_open_or_opens_within_a_week(
            minute in 0i64..2 * 366 * 1440, from in 0i8..24, to in 0i8..24, day in 0usize..7,
        ) {
            let one = windows(&[(&format!("{from:02}:30"), &format!("{to:02}:00"), &[ALL[day]])]);
            let now = at("2026-01-01T00:00Z") + Span::new().minutes(minute);
            match one.open_until(now) {
                Some(end) => {
                    prop_assert!(now < end && end.duration_since(now).as_hours() <= 25);
                    prop_assert_eq!(one.open_until(end - Span::new().seconds(1)), Some(end));
                }
                None => {
                    let next = one.next_open(now).unwrap();
                    prop_assert!(next > now && next.duration_since(now).as_hours() <= 7 * 24 + 1);
                    prop_assert!(one.open_until(next).is_some());
                    prop_assert_eq!(one.open_until(next - Span::new().seconds(1)), None);
                }
            }
        }
    }
}
