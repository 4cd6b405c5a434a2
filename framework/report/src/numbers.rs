//! Numbers as people read them.

use std::time::Duration;

/// `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 time`, `2 times`.
pub fn plural(number: u64, word: &str) -> String {
    format!("{} {word}{}", count(number), if number == 1 { "" } else { "s" })
}

/// A duration with three significant digits and the unit that suits it.
pub fn span(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    let (value, unit) = match seconds {
        s if s >= 3600.0 => {
            let minutes = duration.as_secs() / 60;
            return format!("{} h {:02} min", minutes / 60, minutes % 60);
        }
        s if s >= 60.0 => return format!("{} min {:02} s", duration.as_secs() / 60, duration.as_secs() % 60),
        s if s >= 1.0 => (s, "s"),
        s if s >= 1e-3 => (s * 1e3, "ms"),
        s if s >= 1e-6 => (s * 1e6, "µs"),
        s => (s * 1e9, "ns"),
    };
    let decimals = if value >= 100.0 { 0 } else { usize::from(value < 10.0) + 1 };
    format!("{value:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!(["0", "999", "1,000", "1,234,567"], [0, 999, 1_000, 1_234_567].map(count)[..]);
    }

    #[test]
    fn durations_keep_three_digits() {
        let text = |seconds: f64| span(Duration::from_secs_f64(seconds));
        assert_eq!(
            [text(7325.0), text(61.0), text(2.0), text(0.0123), text(0.000_000_250)],
            ["2 h 02 min", "1 min 01 s", "2.00 s", "12.3 ms", "250 ns"]
        );
    }
}
