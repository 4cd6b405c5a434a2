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

/// `1 time`, `2 times`, `2 switches`.
pub fn plural(number: u64, word: &str) -> String {
    let ending = match word {
        _ if number == 1 => "",
        word if word.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{} {word}{ending}", count(number))
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

/// A least probability: rounded down, and never to certainty.
pub fn at_least(probability: f64) -> String {
    match probability * 100.0 {
        p if p >= 99.9999 => "more than 99.9999 %".to_owned(),
        p if p >= 99.0 => format!("at least {} %", down(p, 4)),
        p if p >= 1.0 => format!("at least {} %", down(p, 1)),
        p if p >= 0.001 => format!("at least {} %", down(p, 3)),
        p if p > 0.0 => format!("1 in {}", whole((1.0 / probability * (1.0 - 1e-9)).ceil())),
        _ => "0 %".to_owned(),
    }
}

/// Rounded down; a little more than one ulp up first, because 0.05 is no binary number. Zeros at the end say nothing.
fn down(value: f64, digits: i32) -> String {
    let scale = 10_f64.powi(digits);
    let text = format!("{:.*}", digits as usize, ((value + 1e-9) * scale).floor() / scale);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A small probability as a number and as one in so many.
pub fn small(probability: f64) -> String {
    if probability <= 0.0 {
        return "0".to_owned();
    }
    let one_in = whole((1.0 / probability).round());
    if probability >= 0.001 {
        format!("{probability:.4} (1 in {one_in})")
    } else {
        format!("{probability:.2e} (1 in {one_in})")
    }
}

/// A whole number of any size.
pub fn whole(number: f64) -> String {
    if !number.is_finite() {
        "∞".to_owned()
    } else if number < 1e15 {
        count(number.ceil() as u64)
    } else {
        format!("{number:.1e}")
    }
}

/// A duration from seconds to ages.
pub fn long_span(seconds: f64) -> String {
    const DAY: f64 = 86_400.0;
    const YEAR: f64 = 365.25 * DAY;
    match seconds {
        s if s >= 1e6 * YEAR => "millions of years".to_owned(),
        s if s >= 2.0 * YEAR => format!("{} years", count((s / YEAR).round() as u64)),
        s if s >= 2.0 * DAY => format!("{} days", count((s / DAY).round() as u64)),
        s => span(Duration::from_secs_f64(s.max(0.0))),
    }
}

/// A number of bytes.
pub fn bytes(number: u64) -> String {
    match number as f64 {
        n if n >= 1073741824.0 => format!("{:.1} GiB", n / 1073741824.0),
        n if n >= 1048576.0 => format!("{:.1} MiB", n / 1048576.0),
        n if n >= 1024.0 => format!("{:.1} KiB", n / 1024.0),
        _ => plural(number, "byte"),
    }
}

/// A number in little room: `12.3k`, `4.5M`.
pub fn compact(number: f64) -> String {
    let (value, unit) = match number.abs() {
        n if n >= 1e12 => (number / 1e12, "T"),
        n if n >= 1e9 => (number / 1e9, "G"),
        n if n >= 1e6 => (number / 1e6, "M"),
        n if n >= 1e3 => (number / 1e3, "k"),
        _ => (number, ""),
    };
    let decimals = if value.abs() >= 100.0 || value.fract() == 0.0 {
        0
    } else if value.abs() >= 10.0 {
        1
    } else {
        2
    };
    let text = format!("{value:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_one_is_many() {
        assert_eq!([1, 2].map(|number| plural(number, "step")), ["1 step", "2 steps"]);
        assert_eq!([1, 0].map(|number| plural(number, "switch")), ["1 switch", "0 switches"]);
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!(["0", "999", "1,000", "1,234,567"], [0, 999, 1_000, 1_234_567].map(count)[..]);
    }

    #[test]
    fn least_probabilities_are_rounded_down() {
        assert_eq!(at_least(0.05), "at least 5 %");
        assert_eq!(at_least(0.999_998_9), "at least 99.9998 %");
        assert_eq!(at_least(1.0), "more than 99.9999 %");
        assert_eq!(at_least(0.6999), "at least 69.9 %");
        assert_eq!(at_least(2.5e-7), "1 in 4,000,000");
        assert_eq!(at_least(0.0), "0 %");
        assert_eq!(small(0.05), "0.0500 (1 in 20)");
        assert_eq!(small(1.0 / 3e6), "3.33e-7 (1 in 3,000,000)");
    }

    #[test]
    fn long_and_large_things_have_words() {
        assert_eq!(
            [90.0, 200_000.0, 1e9, 1e15].map(long_span),
            ["1 min 30 s", "2 days", "32 years", "millions of years"]
        );
        assert_eq!([0, 1, 2048, 5 << 20].map(bytes), ["0 bytes", "1 byte", "2.0 KiB", "5.0 MiB"]);
        assert_eq!([0.0, 7.0, 1234.0, 12_345.0, 5e6].map(compact), ["0", "7", "1.23k", "12.3k", "5M"]);
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
