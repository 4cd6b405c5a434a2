//! Medians of what may not have happened, and intervals of probabilities.

/// The median, where `None` stands for something greater than everything else; `None` when it is not known.
pub fn median(values: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    let mut sorted: Vec<Option<f64>> = values.into_iter().collect();
    sorted.sort_by(|a, b| match (a, b) {
        (Some(a), Some(b)) => a.total_cmp(b),
        (Some(_), None) => std::cmp::Ordering::Less,
        (None, Some(_)) => std::cmp::Ordering::Greater,
        (None, None) => std::cmp::Ordering::Equal,
    });
    let count = sorted.len();
    match count {
        0 => None,
        _ if count.is_multiple_of(2) => Some((sorted[count / 2 - 1]? + sorted[count / 2]?) / 2.0),
        _ => sorted[count / 2],
    }
}

/// The mean; none of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The interval of Clopper and Pearson: covers the true probability with at least `confidence`, whatever it is.
pub fn interval(successes: u64, trials: u64, confidence: f64) -> (f64, f64) {
    if trials == 0 {
        return (0.0, 1.0);
    }
    let (k, n) = (successes.min(trials) as f64, trials as f64);
    let tail = (1.0 - confidence) / 2.0;
    let low = if successes == 0 { 0.0 } else { beta_quantile(tail, k, n - k + 1.0) };
    let high = if successes >= trials { 1.0 } else { beta_quantile(1.0 - tail, k + 1.0, n - k) };
    (low, high)
}

/// Where the regularised incomplete beta function reaches p; by halving, so that nothing can go astray.
fn beta_quantile(p: f64, a: f64, b: f64) -> f64 {
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if incomplete_beta(middle, a, b) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

/// The regularised incomplete beta function, by Lentz's continued fraction.
pub fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges fast below the mean; above it the other tail is computed.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front = (log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp() / a;
    const TINY: f64 = 1e-300;
    let away_from_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let (mut c, mut d) = (1.0, 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for step in 1..10_000 {
        let m = f64::from(step);
        for numerator in [
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        ] {
            d = 1.0 / away_from_zero(1.0 + numerator * d);
            c = away_from_zero(1.0 + numerator / c);
            fraction *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-14 {
            break;
        }
    }
    (front * fraction).clamp(0.0, 1.0)
}

/// The logarithm of the gamma function, by Lanczos' approximation.
fn log_gamma(x: f64) -> f64 {
    const COEFFICIENTS: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let sum = COEFFICIENTS[1..]
        .iter()
        .zip(1..)
        .fold(COEFFICIENTS[0], |sum, (coefficient, index)| sum + coefficient / (x + f64::from(index)));
    let t = x + 7.5;
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_happen_is_greater_than_everything() {
        assert_eq!(median([Some(3.0), None, Some(1.0)]), Some(3.0));
        assert_eq!(median([Some(3.0), None]), None);
        assert_eq!(median([Some(1.0), Some(2.0), None, Some(4.0)]), Some(3.0));
        assert_eq!(median([]), None);
        assert_eq!((mean(&[1.0, 2.0]), mean(&[])), (Some(1.5), None));
    }

    #[test]
    fn the_beta_function_is_that_of_the_tables() {
        assert!((incomplete_beta(0.5, 2.0, 3.0) - 0.6875).abs() < 1e-12);
        assert!((incomplete_beta(0.1, 1.0, 1.0) - 0.1).abs() < 1e-12);
        assert!((incomplete_beta(0.3, 10.0, 30.0) - 0.772_068).abs() < 2e-2);
    }

    #[test]
    fn intervals_cover_what_they_promise() {
        // The rule of three: nothing in n trials means below 3/n with 95 %; here both tails have 2.5 %.
        let (low, high) = interval(0, 100, 0.95);
        assert!(low == 0.0 && (high - 0.036_217).abs() < 1e-5, "{high}");
        let (low, high) = interval(50, 100, 0.95);
        assert!((low - 0.398_321).abs() < 1e-5 && (high - 0.601_679).abs() < 1e-5, "{low} {high}");
        assert_eq!(interval(20, 20, 0.95).1, 1.0);
        assert_eq!(interval(0, 0, 0.95), (0.0, 1.0));
        // Exactly: the true probability is inside for all but so many of the possible counts.
        let (n, p) = (40u64, 0.2_f64);
        let choose = |k: u64| (0..k).fold(1.0, |sum, i| sum * (n - i) as f64 / (i + 1) as f64);
        let missed: f64 = (0..=n)
            .filter(|k| {
                let (low, high) = interval(*k, n, 0.95);
                p < low || p > high
            })
            .map(|k| choose(k) * p.powi(k as i32) * (1.0 - p).powi((n - k) as i32))
            .sum();
        assert!(missed <= 0.05, "{missed}");
    }
}
