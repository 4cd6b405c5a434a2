//! What is drawn follows the curve that was asked for.
//!
//! Floats: Kolmogorov-Smirnov. By the Dvoretzky-Kiefer-Wolfowitz inequality with Massart's constant, a right
//! sampler exceeds a distance of t/√n with probability at most 2·exp(-2t²): 9.4e-7 for t = 2.70. With
//! n = 200,000 that is a distance of 0.0060.
//!
//! Whole numbers: Pearson's chi-square over bins that expect at least 100 draws. By Laurent and Massart, a
//! chi-square variable of k degrees of freedom exceeds k + 2√(kx) + 2x with probability at most e^-x: 8.4e-7
//! for x = 14.
//!
//! Seeds are fixed, so a passing test passes always; the rates say how likely a right sampler would have
//! failed when the seed was chosen. Each assertion is below 1e-6.

use rand::{Rng, RngExt};
use waylay_dist::{Dist, Seed, approximate};

const DRAWS: usize = 200_000;
const KS_LIMIT: f64 = 2.70;
const CHI_SQUARE_X: f64 = 14.0;

fn dist(text: &str) -> Dist {
    Dist::new(&text.parse().expect(text)).expect(text)
}

/// The distance between the draws and a distribution function, in units of 1/√n.
fn ks(mut draws: Vec<f64>, cdf: impl Fn(f64) -> f64) -> f64 {
    draws.sort_by(f64::total_cmp);
    let n = draws.len() as f64;
    let distance = draws.iter().enumerate().map(|(i, x)| {
        let expected = cdf(*x);
        (expected - i as f64 / n).abs().max((expected - (i + 1) as f64 / n).abs())
    });
    distance.fold(0.0, f64::max) * n.sqrt()
}

/// How far the counts are from a chi-square limit: below 1 is accepted.
fn chi_square(counts: &[u64], probabilities: &[f64]) -> f64 {
    assert_eq!(counts.len(), probabilities.len());
    let n: u64 = counts.iter().sum();
    let mut statistic = 0.0;
    let mut bins = 0.0;
    let (mut seen, mut expected) = (0.0, 0.0);
    for (i, (count, probability)) in counts.iter().zip(probabilities).enumerate() {
        seen += *count as f64;
        expected += probability * n as f64;
        let left: f64 = probabilities[i + 1..].iter().sum::<f64>() * n as f64;
        if expected >= 100.0 && (left >= 100.0 || i + 1 == counts.len()) {
            statistic += (seen - expected).powi(2) / expected;
            bins += 1.0;
            (seen, expected) = (0.0, 0.0);
        }
    }
    assert!(expected < 1e-6 && bins >= 2.0, "the probabilities do not fill the bins");
    let k: f64 = bins - 1.0;
    statistic / (k + 2.0 * (k * CHI_SQUARE_X).sqrt() + 2.0 * CHI_SQUARE_X)
}

/// The distribution function of a density over a range, scaled to 1, from a table of 20,000 steps.
fn cdf_of(density: impl Fn(f64) -> f64, min: f64, max: f64) -> impl Fn(f64) -> f64 {
    const STEPS: usize = 20_000;
    let step = (max - min) / STEPS as f64;
    let mut table = vec![0.0];
    for i in 0..STEPS {
        let x = min + i as f64 * step;
        let mass = step / 6.0 * (density(x) + 4.0 * density(x + step / 2.0) + density(x + step));
        table.push(table[i] + mass);
    }
    move |x| {
        let at = ((x - min) / step).clamp(0.0, STEPS as f64);
        let i = (at as usize).min(STEPS - 1);
        (table[i] + (table[i + 1] - table[i]) * (at - i as f64)) / table[STEPS]
    }
}

fn floats(spec: &str, seed: u64) -> Vec<f64> {
    let dist = dist(spec);
    let mut rng = Seed::new(seed).component("statistics");
    (0..DRAWS).map(|_| dist.sample_float(&mut rng)).collect()
}

/// Counts of the whole numbers `first..=last`; a draw outside fails.
fn ints(spec: &str, seed: u64, first: i64, last: i64) -> Vec<u64> {
    let dist = dist(spec);
    let mut rng = Seed::new(seed).component("statistics");
    let mut counts = vec![0; (last - first + 1) as usize];
    for _ in 0..DRAWS {
        counts[(dist.sample_int(&mut rng) - first) as usize] += 1;
    }
    counts
}

fn bell(mean: f64, sigma: f64) -> impl Fn(f64) -> f64 {
    move |x| (-((x - mean) / sigma).powi(2) / 2.0).exp()
}

#[test]
fn uniform_floats() {
    let t = ks(floats("{ uniform = { min = -3.0, max = 7 } }", 1), |x| (x + 3.0) / 10.0);
    assert!(t < KS_LIMIT, "{t}");
}

#[test]
fn uniform_ints() {
    for (seed, last) in [(1, 1), (2, 2), (3, 6), (4, 63), (5, 999)] {
        let counts = ints(&format!("{{ uniform = {{ min = 0, max = {last} }} }}"), seed, 0, last);
        let share = 1.0 / (last + 1) as f64;
        let x = chi_square(&counts, &vec![share; counts.len()]);
        assert!(x < 1.0, "{last} {x}");
    }
}

/// A range of 3·2^61 is where a plain multiplication would favour every third number by a half.
#[test]
fn uniform_ints_over_wide_ranges() {
    let max = 3 * (1_i64 << 61) - 1;
    let dist = dist(&format!("{{ uniform = {{ min = 0, max = {max} }} }}"));
    let mut rng = Seed::new(9).component("statistics");
    let mut thirds = [0; 3];
    let mut residues = [0; 3];
    for _ in 0..DRAWS {
        let draw = dist.sample_int(&mut rng);
        thirds[(draw >> 61) as usize] += 1;
        residues[(draw % 3) as usize] += 1;
    }
    assert!(chi_square(&thirds, &[1.0 / 3.0; 3]) < 1.0);
    assert!(chi_square(&residues, &[1.0 / 3.0; 3]) < 1.0);
}

#[test]
fn gaussian_floats_in_every_kind_of_window() {
    // Each row reaches another way of making candidates: whole curve, uniform around the peak, uniform
    // beside it, exponential tails upwards and downwards, near and far.
    for (seed, keys, min, max) in [
        (1, "", -12.0, 12.0),
        (2, ", min = -1, max = 2.5", -1.0, 2.5),
        (3, ", min = 0", 0.0, 12.0),
        (4, ", min = -0.3, max = 0.5", -0.3, 0.5),
        (5, ", min = 0.5, max = 0.9", 0.5, 0.9),
        (6, ", min = -0.9, max = -0.5", -0.9, -0.5),
        (7, ", min = 1", 1.0, 12.0),
        (8, ", max = -2", -12.0, -2.0),
        (9, ", min = 2, max = 4", 2.0, 4.0),
        (10, ", min = 30", 30.0, 31.5),
    ] {
        let draws = floats(&format!("{{ gaussian = {{ mean = 0, sigma = 1{keys} }} }}"), seed);
        // Scaled by the density at the nearer end, which underflows far out.
        let peak = 0.0_f64.clamp(min, max);
        let t = ks(draws, cdf_of(move |x| (-(x * x - peak * peak) / 2.0).exp(), min, max));
        assert!(t < KS_LIMIT, "{keys} {t}");
    }
}

#[test]
fn gaussian_mean_and_sigma_are_those_written() {
    let t =
        ks(floats("{ gaussian = { mean = 100, sigma = 15 } }", 11), cdf_of(bell(100.0, 15.0), -80.0, 280.0));
    assert!(t < KS_LIMIT, "{t}");
}

/// Whole numbers are the nearest: each has the mass of the unit interval around it, at cut-off ends too.
#[test]
fn gaussian_ints() {
    for (seed, keys, first, last) in
        [(1, "", 60, 140), (2, ", min = 95, max = 120", 95, 120), (3, ", min = 130", 130, 175)]
    {
        let counts = ints(&format!("{{ gaussian = {{ mean = 100, sigma = 5{keys} }} }}"), seed, first, last);
        let cdf = cdf_of(bell(100.0, 5.0), first as f64 - 0.5, last as f64 + 0.5);
        let shares: Vec<_> = (first..=last).map(|k| cdf(k as f64 + 0.5) - cdf(k as f64 - 0.5)).collect();
        let x = chi_square(&counts, &shares);
        assert!(x < 1.0, "{keys} {x}");
    }
}

#[test]
fn exponential_floats() {
    for (seed, keys, rate) in [
        (1, "", 1000_f64.ln() / 8.0),
        (2, ", rate = 0.01", 0.01),
        (3, ", rate = 3", 3.0),
        (4, ", rate = 1e-300", 1e-12),
    ] {
        let draws = floats(&format!("{{ exponential = {{ min = 2, max = 10{keys} }} }}"), seed);
        let t = ks(draws, |x| (-rate * (x - 2.0)).exp_m1() / (-rate * 8.0_f64).exp_m1());
        assert!(t < KS_LIMIT, "{keys} {t}");
    }
}

#[test]
fn exponential_ints() {
    let rate = 1000_f64.ln() / 20.0;
    let counts = ints("{ exponential = { min = 5, max = 25 } }", 1, 5, 25);
    let weights: Vec<_> = (0..=20).map(|k| (-rate * f64::from(k)).exp()).collect();
    let total: f64 = weights.iter().sum();
    let shares: Vec<_> = weights.iter().map(|weight| weight / total).collect();
    let x = chi_square(&counts, &shares);
    assert!(x < 1.0, "{x}");
}

/// Hoeffding: an average of n draws from a range of width w is off by more than w·√(ln(2/a)/2n) with
/// probability at most a; for a = 9.4e-7 that is 2.70 w/√n.
#[test]
fn exponential_draws_have_the_mean_asked_for() {
    let limit = KS_LIMIT * 100.0 / (DRAWS as f64).sqrt();
    for (seed, mean) in [(1, 13.0), (2, 30.0), (3, 58.0)] {
        let spec = format!("{{ exponential = {{ min = 10, max = 110, mean = {mean} }} }}");
        let average = floats(&spec, seed).iter().sum::<f64>() / DRAWS as f64;
        assert!((average - mean).abs() < limit, "{mean} {average}");
        let counts = ints(&spec, seed, 10, 110);
        let sum: u64 = counts.iter().zip(10..).map(|(count, value)| count * value).sum();
        let average = sum as f64 / DRAWS as f64;
        assert!((average - mean).abs() < limit, "{mean} {average}");
    }
}

#[test]
fn weighted_ints_and_floats() {
    let spec = "{ weighted = [{ min = 0, max = 3, p = 0.5 }, { min = 10, max = 10, p = 0.2 }, \
                { min = 3, max = 5, p = 0.3 }, { min = 6, max = 7, p = 0.0 }] }";
    let counts = ints(spec, 1, 0, 10);
    // 3 belongs to two intervals.
    assert_eq!(counts[6..10], [0; 4]);
    let counts = [counts[0], counts[1], counts[2], counts[3], counts[4], counts[5], counts[10]];
    let x = chi_square(&counts, &[0.125, 0.125, 0.125, 0.225, 0.1, 0.1, 0.2]);
    assert!(x < 1.0, "{x}");

    let spec = "{ weighted = [{ min = 0.0, max = 1.0, p = 0.25 }, { min = 1.0, max = 5.0, p = 0.75 }] }";
    let t = ks(floats(spec, 2), |x| if x < 1.0 { x / 4.0 } else { 0.25 + (x - 1.0) * 0.1875 });
    assert!(t < KS_LIMIT, "{t}");
}

#[test]
fn durations() {
    let dist = dist("{ uniform = { min = '1us', max = '5ms' } }");
    let mut rng = Seed::new(4).component("statistics");
    let draws = (0..DRAWS).map(|_| dist.sample_duration(&mut rng).as_nanos() as f64).collect();
    let t = ks(draws, |x| (x - 1e3) / (5e6 - 1e3));
    assert!(t < KS_LIMIT, "{t}");
}

#[test]
fn indices() {
    let dist = dist("{ uniform = { min = -7, max = 13 } }");
    let mut rng = Seed::new(5).component("statistics");
    let mut counts = [0; 7];
    for _ in 0..DRAWS {
        counts[dist.sample_index(&mut rng, 7).expect("not empty")] += 1;
    }
    assert!(chi_square(&counts, &[1.0 / 7.0; 7]) < 1.0);
    assert_eq!(dist.sample_index(&mut rng, 0), None);
}

/// The steps of an approximation differ from the curve's distribution function by at most what the
/// threshold leaves inside one interval, so the draws follow the curve to within that and the KS limit.
#[test]
fn an_approximation_follows_its_curve() {
    let normal = |x: f64| (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt();
    let falling = |x: f64| 2.0 * (-2.0 * x).exp();
    type Density<'a> = &'a dyn Fn(f64) -> f64;
    let cases: [(Density, f64, f64, f64); 4] = [
        (&normal, -6.0, 6.0, 0.05),
        (&normal, -6.0, 6.0, 0.005),
        (&falling, 0.0, 8.0, 0.1),
        (&falling, 0.0, 8.0, 0.01),
    ];
    for (seed, (density, min, max, threshold)) in cases.into_iter().enumerate() {
        let spec = approximate(density, min, max, threshold).expect("a density");
        let dist = Dist::new(&spec).expect("a checked distribution");
        let waylay_dist::Spec::Weighted(intervals) = &spec else { panic!("not weighted") };

        let cdf = cdf_of(density, min, max);
        let number = |value: &waylay_dist::Value| value.to_string().parse::<f64>().expect("a float");
        let mut off: f64 = 0.0;
        for interval in intervals {
            let (a, b) = (number(&interval.min), number(&interval.max));
            // Eq. 1 at many more points than the approximation itself looked at.
            let seen: Vec<_> = (0..=100).map(|i| density(a + (b - a) * f64::from(i) / 100.0)).collect();
            let spread = seen.iter().copied().fold(0.0, f64::max) - seen.iter().copied().fold(9.0, f64::min);
            assert!(spread < threshold, "{a} {b} {spread}");
            assert!((interval.p - (cdf(b) - cdf(a))).abs() < 1e-6);
            off = off.max((b - a) * threshold / 2.0);
        }
        let mut rng = Seed::new(seed as u64).component("statistics");
        let draws = (0..DRAWS).map(|_| dist.sample_float(&mut rng)).collect();
        let limit = KS_LIMIT + off * (DRAWS as f64).sqrt();
        let t = ks(draws, cdf);
        assert!(t < limit, "{t} {limit}");
    }
}

/// Neighbouring iterations, workers and tests share nothing: pairs of first draws fill a square evenly.
#[test]
fn streams_are_independent() {
    let seed = Seed::new(77);
    let mut first = seed.worker("queue", 0);
    let mut second = seed.worker("queue", 1);
    let mut other = seed.worker("queues", 0);
    let draw = |rng: &mut waylay_dist::WorkerRng, iteration| {
        rng.begin(iteration);
        (rng.next_u64() >> 60) as usize
    };
    let mut squares = vec![[0; 256]; 4];
    for i in 0..DRAWS as u64 {
        let a = draw(&mut first, i);
        squares[0][a * 16 + draw(&mut second, i)] += 1;
        squares[1][a * 16 + draw(&mut other, i)] += 1;
        squares[2][a * 16 + draw(&mut first, i + 1)] += 1;
        first.begin(i);
        let later = (0..9).map(|_| (first.random::<u64>() >> 60) as usize).last().unwrap_or(0);
        squares[3][a * 16 + later] += 1;
    }
    for counts in squares {
        let x = chi_square(&counts, &[1.0 / 256.0; 256]);
        assert!(x < 1.0, "{x}");
    }
}
