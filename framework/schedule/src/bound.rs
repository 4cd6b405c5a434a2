//! What a strategy promises, in numbers: the probability of one run, the runs needed, the largest depth.
//!
//! Everything is computed in logarithms, so that a probability of 10⁻⁴⁰⁰ is still a number and a million runs do
//! not round to none. Nothing here is estimated by sampling.
//!
//! - PCT: 1/(n·k^(d−1)), Theorem 9 of "A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs".
//! - RPro: 1/(n·k·r^(d−2)) for d ≥ 2 and 1/n for d = 1: as PCT, when all change points lie within r steps.
//! - Stride: the least likely order of two events, after Eq. 5 of "Promoting Secondary Orders of Event Pairs in
//!   Randomized Scheduling using a Randomized Stride", in closed form (see [`stride`]); d such orders that are
//!   independent have the d-th power of it. This holds for threads that do not block and is not a bound by depth.
//! - Random walk: the exact form of Eq. 3 of the same paper.

/// A probability by its natural logarithm.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Chance {
    ln: f64,
}

impl Chance {
    /// Certainty.
    pub const CERTAIN: Chance = Chance { ln: 0.0 };

    /// From a logarithm; positive ones count as certainty.
    pub fn from_ln(ln: f64) -> Chance {
        Chance { ln: ln.min(0.0) }
    }

    /// From a probability between 0 and 1.
    pub fn new(probability: f64) -> Chance {
        Chance::from_ln(probability.ln())
    }

    /// Its natural logarithm.
    pub fn ln(self) -> f64 {
        self.ln
    }

    /// The probability; 0 when it is too small for a float.
    pub fn value(self) -> f64 {
        self.ln.exp()
    }

    /// The logarithm of missing in one run.
    fn ln_miss(self) -> f64 {
        // Two forms, because each loses its digits where the other keeps them.
        if self.ln > -std::f64::consts::LN_2 { (-self.ln.exp_m1()).ln() } else { (-self.ln.exp()).ln_1p() }
    }

    /// The probability of at least one success in `runs` independent runs.
    pub fn within(self, runs: f64) -> f64 {
        if self.ln == f64::NEG_INFINITY || runs <= 0.0 {
            return 0.0;
        }
        let ln_miss = self.ln_miss();
        // Below the smallest float the miss rounds to certainty although runs may make up for it.
        let exponent = if ln_miss == 0.0 { -(self.ln + runs.ln()).exp() } else { runs * ln_miss };
        -exponent.exp_m1()
    }

    /// The fewest runs that succeed at least once with this confidence; infinite when none do.
    pub fn runs_for(self, confidence: f64) -> f64 {
        if confidence <= 0.0 {
            return 0.0;
        }
        if self.ln == 0.0 {
            return 1.0;
        }
        if confidence >= 1.0 || self.ln == f64::NEG_INFINITY {
            return f64::INFINITY;
        }
        let ln_doubt = (-confidence).ln_1p();
        let ln_miss = self.ln_miss();
        let runs = if ln_miss == 0.0 { ((-ln_doubt).ln() - self.ln).exp() } else { ln_doubt / ln_miss };
        let runs = runs.ceil().max(1.0);
        // The quotient may round up past a whole number.
        if runs > 1.0 && self.within(runs - 1.0) >= confidence { runs - 1.0 } else { runs }
    }
}

/// The chance one run must have so that `runs` runs reach the confidence.
pub fn chance_needed(confidence: f64, runs: f64) -> Chance {
    // 1 − (1−c)^(1/R)
    Chance::from_ln((-((-confidence).ln_1p() / runs).exp_m1()).ln())
}

/// PCT on at most `threads` threads and `steps` steps, for bugs of this depth.
pub fn pct(threads: u64, steps: u64, depth: u32) -> Chance {
    let changes = f64::from(depth.max(1) - 1);
    Chance::from_ln(-(ln(threads) + changes * ln(steps)))
}

/// RPro with this radius, for bugs of this depth whose change points lie within the radius.
pub fn rpro(threads: u64, steps: u64, depth: u32, radius: u64) -> Chance {
    let near = radius.min(steps.max(1));
    match depth.max(1) {
        1 => Chance::from_ln(-ln(threads)),
        depth => Chance::from_ln(-(ln(threads) + ln(steps) + f64::from(depth - 2) * ln(near))),
    }
}

fn ln(count: u64) -> f64 {
    (count.max(1) as f64).ln()
}

/// The depth beyond which no search for a larger one is made: the chance may not depend on the depth at all
/// (one step), and then any depth is reached.
pub const DEPTH_LIMIT: u32 = 1000;

/// The largest depth whose chance reaches the confidence within the planned runs, as section V.B of the stride
/// paper chooses it; 0 when not even depth 1 does.
pub fn largest_depth(confidence: f64, runs: f64, chance: impl Fn(u32) -> Chance) -> u32 {
    (1..=DEPTH_LIMIT).take_while(|&depth| chance(depth).within(runs) >= confidence).last().unwrap_or(0)
}

/// The exact probability that a random walk over two threads that never block carries out `b` events of one
/// before `a` events of the other: Eq. 3 without the normal approximation.
///
/// The last event of the b falls after i < a events of the other thread; each such sequence of b+i fair choices
/// has probability 2^−(b+i), and there are C(b−1+i, i) of them.
pub fn secondary_order(a: u64, b: u64) -> Chance {
    if b == 0 {
        return Chance::CERTAIN;
    }
    let mut ln_term = -(b as f64) * std::f64::consts::LN_2;
    let (mut peak, mut sum) = (f64::NEG_INFINITY, 0.0_f64);
    for i in 0..a {
        if ln_term > peak {
            sum = sum * (peak - ln_term).exp() + 1.0;
            peak = ln_term;
        } else {
            sum += (ln_term - peak).exp();
        }
        ln_term += ((b + i) as f64 / (2.0 * (i + 1) as f64)).ln();
    }
    Chance::from_ln(peak + sum.ln())
}

/// Randomised stride.
///
/// Eq. 5 of the paper counts each way in which the thread gets through as often as the coin could fall on it
/// afterwards: its sum Σ 2⁻ⁱ·P(U₁+…+Uᵢ ≥ x) is E[2^(1−N)] for the number N of selections needed, where the
/// probability of N selections in a row is E[2⁻ᴺ]. (One event and strides of 1: the sum is 1, the probability
/// ½.) [`equation_five`](stride::equation_five) is the equation as printed, which gives the published ratios;
/// what is promised to users is half of it, [`least_likely_order`](stride::least_likely_order).
pub mod stride {
    use super::{Chance, chance_needed};

    /// From this ratio on the alternating sum loses digits, and the sum over roots has them all.
    const CROSSING: f64 = 8.0;

    /// The probability that a thread of length l = ratio·s_max runs to its end before the other thread of the
    /// pair takes its first step.
    pub fn least_likely_order(ratio: f64) -> Chance {
        if ratio <= 0.0 {
            return Chance::CERTAIN;
        }
        Chance::from_ln(ln_equation_five(ratio) - std::f64::consts::LN_2)
    }

    /// Eq. 5 as printed: twice the probability, and meant for ratios above 1.
    pub fn equation_five(ratio: f64) -> Chance {
        Chance::from_ln(ln_equation_five(ratio))
    }

    #[cfg(test)]
    thread_local! {
        static EVALUATIONS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
    }

    /// How often this thread computed the probability for a ratio so far.
    #[cfg(test)]
    pub(crate) fn evaluations() -> u64 {
        EVALUATIONS.get()
    }

    fn ln_equation_five(ratio: f64) -> f64 {
        #[cfg(test)]
        EVALUATIONS.set(EVALUATIONS.get() + 1);
        if ratio < CROSSING {
            alternating_sum(ratio).ln()
        } else {
            ln_sum_over_roots(ratio) + std::f64::consts::LN_2
        }
    }

    /// The series of Irwin–Hall distributions sums to
    /// 2 − Σ_{j=0}^{⌊x⌋} (−1)ʲ/j! · ((x−j)/2)ʲ · e^((x−j)/2).
    fn alternating_sum(ratio: f64) -> f64 {
        let mut sum = 0.0;
        let mut factorial = 1.0;
        for j in 0..=ratio.floor() as i32 {
            if j > 0 {
                factorial *= -f64::from(j);
            }
            let half = (ratio - f64::from(j)) / 2.0;
            sum += half.powi(j) / factorial * half.exp();
        }
        2.0 - sum
    }

    /// Half of the series from its Laplace transform (s−1+e⁻ˢ)/(s·(2s−1+e⁻ˢ)), whose poles are the negated
    /// roots of e^λ = 1+2λ: Σ e^(−λx)/(2λ−1). One root is real; the complex pairs fade with x like (4πm)⁻ˣ.
    fn ln_sum_over_roots(ratio: f64) -> f64 {
        let real = (0..70).fold(1.0_f64, |root, _| (1.0 + 2.0 * root).ln());
        let mut rest = 0.0;
        for m in 1..=8 {
            let turn = 2.0 * std::f64::consts::PI * f64::from(m);
            let (re, im) = (0..30).fold((2.0_f64, turn), |(re, im), _| {
                let (x, y) = (1.0 + 2.0 * re, 2.0 * im);
                (x.hypot(y).ln(), y.atan2(x) + turn)
            });
            // Twice the real part of (2·real−1)/(2λ−1) · e^(−(λ−real)x): the pair, relative to the real root.
            let (x, y) = (2.0 * re - 1.0, 2.0 * im);
            let size = (2.0 * real - 1.0) / x.hypot(y) * (-(re - real) * ratio).exp();
            rest += 2.0 * size * (-im * ratio - y.atan2(x)).cos();
        }
        -real * ratio - (2.0 * real - 1.0).ln() + rest.ln_1p()
    }

    /// The same probability for whole strides of 1 to `s_max` and `length` events, without the continuous
    /// approximation: q(m) = ½·mean of q(m−1)…q(m−s_max), q(m) = 1 for m ≤ 0.
    pub fn least_likely_order_exact(length: u64, s_max: u64) -> Chance {
        let s_max = s_max.max(1) as usize;
        let mut window = std::collections::VecDeque::from(vec![1.0_f64; s_max]);
        let mut sum = s_max as f64;
        let mut q = 1.0;
        for m in 0..length {
            // Summed afresh now and then: the running sum shrinks and would keep the error of larger terms.
            if m % s_max as u64 == 0 {
                sum = window.iter().sum();
            }
            q = 0.5 * sum / s_max as f64;
            sum += q - window.pop_front().unwrap_or(0.0);
            window.push_back(q);
        }
        Chance::new(q)
    }

    /// The chance that one run covers `orders` independent least likely orders.
    pub fn per_run(ratio: f64, orders: u32) -> Chance {
        Chance::from_ln(least_likely_order(ratio).ln() * f64::from(orders))
    }

    /// The largest ratio l/s_max at which `runs` runs cover `orders` independent least likely orders with this
    /// confidence; 0 when no ratio does.
    pub fn ratio_for(confidence: f64, runs: f64, orders: u32) -> f64 {
        let wanted = chance_needed(confidence, runs).ln() / f64::from(orders.max(1));
        solve(|ratio| least_likely_order(ratio).ln(), wanted)
    }

    /// The ratio by Eq. 5 as printed: 6.6 for one order and 3.4 for two in 9,990 runs at 95 %, with the digits
    /// after the first cut off.
    pub fn published_ratio(confidence: f64, runs: f64, orders: u32) -> f64 {
        let wanted = chance_needed(confidence, runs).ln() / f64::from(orders.max(1));
        solve(ln_equation_five, wanted)
    }

    /// Where the falling function reaches `wanted`.
    fn solve(ln_chance: impl Fn(f64) -> f64, wanted: f64) -> f64 {
        let (mut low, mut high) = (0.0, 1.0);
        while ln_chance(high) > wanted {
            low = high;
            high *= 2.0;
        }
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            // Neighbours: nothing lies between them, and the lower one stays what it is.
            if middle <= low || middle >= high {
                break;
            }
            if ln_chance(middle) > wanted { low = middle } else { high = middle }
        }
        low
    }
}

#[cfg(test)]
mod tests;
