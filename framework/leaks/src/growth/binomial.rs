//! Tails of the binomial distribution, summed term by term, so that they stay exact far out where normal
//! approximations are wrong by orders of magnitude.

/// P(X >= k) for X ~ Binomial(n, p).
pub(super) fn upper_tail(n: u64, k: u64, p: f64) -> f64 {
    if k == 0 {
        1.0
    } else if k > n {
        0.0
    } else if k as f64 > n as f64 * p {
        sum_upward(n, k, p)
    } else {
        1.0 - sum_upward(n, n - k + 1, 1.0 - p)
    }
}

/// P(X <= k) for X ~ Binomial(n, p).
pub(super) fn lower_tail(n: u64, k: u64, p: f64) -> f64 {
    if k >= n { 1.0 } else { upper_tail(n, n - k, 1.0 - p) }
}

/// The probabilities of `first`, `first + 1`, … n successes, added up. `first` is above the mean, so the
/// terms only get smaller.
fn sum_upward(n: u64, first: u64, p: f64) -> f64 {
    let odds = p / (1.0 - p);
    let mut term = log_term(n, first, p).exp();
    let mut sum = 0.0;
    for successes in first..=n {
        sum += term;
        term *= (n - successes) as f64 / (successes + 1) as f64 * odds;
        if term < sum * 1e-17 {
            break;
        }
    }
    sum.min(1.0)
}

fn log_term(n: u64, k: u64, p: f64) -> f64 {
    log_factorial(n) - log_factorial(k) - log_factorial(n - k)
        + k as f64 * p.ln()
        + (n - k) as f64 * (-p).ln_1p()
}

/// Exact sum for small n, Stirling's series (error below 1e-13 from 32 on) beyond.
fn log_factorial(n: u64) -> f64 {
    if n < 32 {
        return (2..=n).map(|factor| (factor as f64).ln()).sum();
    }
    let x = n as f64 + 1.0;
    let series = 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3)) + 1.0 / (1260.0 * x.powi(5));
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(left: f64, right: f64) {
        assert!((left - right).abs() <= right.abs() * 1e-9, "{left} is not {right}");
    }

    #[test]
    fn small_cases_by_hand() {
        close(upper_tail(3, 2, 0.5), 0.5);
        close(upper_tail(10, 10, 0.1), 1e-10);
        close(upper_tail(4, 1, 0.1), 1.0 - 0.9f64.powi(4));
        close(lower_tail(3, 0, 0.25), 0.75f64.powi(3));
        close(lower_tail(5, 5, 0.3), 1.0);
        assert_eq!(upper_tail(5, 6, 0.3), 0.0);
        assert_eq!(upper_tail(0, 0, 0.3), 1.0);
    }

    #[test]
    fn tails_meet_in_the_middle() {
        for (n, k, p) in [(50, 20, 0.5), (64, 32, 0.1), (1000, 90, 0.1), (60_000, 30_100, 0.5)] {
            let both = upper_tail(n, k, p) + lower_tail(n, k - 1, p);
            assert!((both - 1.0).abs() < 1e-9, "{n} {k} {p}: {both}");
        }
    }

    /// Against the sum of all terms computed from exact integer binomial coefficients.
    #[test]
    fn far_tail_against_exact_coefficients() {
        let (n, k) = (60u64, 30u64);
        let mut choose = 1u128;
        let mut exact = 0.0;
        for successes in 0..=n {
            if successes >= k {
                exact += choose as f64 * 0.1f64.powi(successes as i32) * 0.9f64.powi((n - successes) as i32);
            }
            choose = choose * u128::from(n - successes) / u128::from(successes + 1);
        }
        close(upper_tail(n, k, 0.1), exact);
        assert!(exact < 1e-14);
    }
}
