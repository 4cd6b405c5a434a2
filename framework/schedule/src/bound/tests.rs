use super::*;

fn close(left: f64, right: f64, relative: f64) {
    assert!((left - right).abs() <= relative * right.abs(), "{left} is not within {relative} of {right}");
}

#[test]
fn pct_is_the_reciprocal_of_n_times_k_to_the_changes() {
    close(pct(2, 10, 1).value(), 0.5, 1e-14);
    close(pct(2, 10, 2).value(), 1.0 / 20.0, 1e-14);
    close(pct(5, 9631, 3).value(), 1.0 / (5.0 * 9631.0 * 9631.0), 1e-13);
    assert_eq!(pct(1, 1, 7), Chance::CERTAIN);
}

#[test]
fn table_two_of_the_paper_follows() {
    // Columns n and k_eff, d = 2: pbzip2, work stealing queue and Dryad, whose bound the paper rounds.
    close(pct(4, 1207, 2).value(), 2e-4, 0.05);
    close(pct(2, 75, 2).value(), 1.0 / 150.0, 1e-12);
    close(pct(5, 9631, 2).value(), 2e-5, 0.05);
}

#[test]
fn rpro_is_pct_up_to_depth_two_and_better_beyond() {
    for depth in 1..=2 {
        assert_eq!(rpro(3, 1000, depth, 10), pct(3, 1000, depth));
    }
    close(rpro(3, 1000, 4, 10).value(), 1.0 / (3.0 * 1000.0 * 100.0), 1e-12);
    assert_eq!(rpro(3, 5, 4, 50), pct(3, 5, 4));
}

#[test]
fn runs_needed_is_the_smallest_number() {
    for (probability, confidence) in [(0.5, 0.95), (1e-3, 0.95), (0.3, 0.5), (1e-9, 0.999), (0.9, 0.1)] {
        let chance = Chance::new(probability);
        let runs = chance.runs_for(confidence);
        assert!(chance.within(runs) >= confidence);
        assert!(chance.within(runs - 1.0) < confidence);
    }
    assert_eq!(Chance::new(0.5).runs_for(0.95), 5.0);
    assert_eq!(Chance::new(0.5).runs_for(0.75), 2.0);
    assert_eq!(Chance::CERTAIN.runs_for(1.0), 1.0);
    assert_eq!(Chance::new(0.5).runs_for(1.0), f64::INFINITY);
    assert_eq!(Chance::new(0.5).runs_for(0.0), 0.0);
}

#[test]
fn tiny_chances_stay_numbers() {
    let chance = pct(100, 1_000_000, 80);
    assert_eq!(chance.value(), 0.0);
    close(chance.ln(), -(100.0_f64.ln() + 79.0 * 1e6_f64.ln()), 1e-14);
    let rare = Chance::from_ln(-300.0);
    close(rare.within(1e100), 1e100 * (-300.0_f64).exp(), 1e-9);
    close(rare.runs_for(0.5).ln(), std::f64::consts::LN_2.ln() + 300.0, 1e-12);
}

#[test]
fn the_largest_depth_is_the_last_that_reaches_the_confidence() {
    let chance = |depth| pct(4, 100, depth);
    // 1/4, 1/400, 1/40,000: 10,000 runs miss the last with probability e^(−1/4).
    assert_eq!(largest_depth(0.95, 10_000.0, chance), 2);
    assert_eq!(largest_depth(0.20, 10_000.0, chance), 3);
    assert_eq!(largest_depth(0.95, 1.0, chance), 0);
    assert_eq!(largest_depth(0.95, 1.0, |depth| pct(1, 1, depth)), DEPTH_LIMIT);
}

#[test]
fn stride_ratios_of_the_paper() {
    let one = stride::published_ratio(0.95, 9990.0, 1);
    let two = stride::published_ratio(0.95, 9990.0, 2);
    close(one, 6.678_798_032, 1e-9);
    close(two, 3.450_328_800, 1e-9);
    assert_eq!(((one * 10.0).floor() / 10.0, (two * 10.0).floor() / 10.0), (6.6, 3.4));
}

#[test]
fn the_promised_ratio_reaches_the_confidence() {
    for orders in 1..=3 {
        let ratio = stride::ratio_for(0.95, 9990.0, orders);
        assert!(ratio < stride::published_ratio(0.95, 9990.0, orders));
        close(stride::per_run(ratio, orders).within(9990.0), 0.95, 1e-9);
    }
    // What the published ratio really covers in the runs it was chosen for.
    close(stride::per_run(6.6, 1).within(9990.0), 0.808, 1e-2);
}

#[test]
fn the_closed_form_solves_the_renewal_equation() {
    // q(x) = ½·∫₀¹ q(x−u) du with q = 1 below 0: the midpoint rule on 20,000 pieces, which never evaluates at the
    // jump of q at 0 because x is a multiple of the piece.
    let pieces = 20_000;
    for x in [0.25, 0.5, 1.0, 1.5, 2.5, 6.5, 7.5, 8.5, 12.0, 100.0] {
        let q = |at: f64| stride::least_likely_order(at).value();
        let width = 1.0 / f64::from(pieces);
        let integral: f64 = (0..pieces).map(|i| q(x - (f64::from(i) + 0.5) * width) * width).sum();
        close(0.5 * integral, q(x), 1e-8);
    }
}

#[test]
fn whole_strides_approach_the_closed_form() {
    for ratio in [1.0, 3.4, 6.6] {
        let s_max = 20_000_u64;
        let length = (ratio * s_max as f64) as u64;
        let exact = stride::least_likely_order_exact(length, s_max).value();
        let continuous = stride::least_likely_order(ratio).value();
        close(exact, continuous, 2e-3);
        // The continuous form leaves out only what helps, as the paper says.
        assert!(exact >= continuous);
    }
    close(stride::least_likely_order_exact(3, 1).value(), 0.125, 1e-14);
    // Two events, strides 1 or 2: ½·(½·½ + ½·1) = 3/8.
    close(stride::least_likely_order_exact(2, 2).value(), 0.375, 1e-14);
}

#[test]
fn secondary_orders_of_a_random_walk() {
    close(secondary_order(1, 1).value(), 0.5, 1e-14);
    close(secondary_order(1, 5).value(), 1.0 / 32.0, 1e-14);
    // Three of one before two of the other: 1/8 + 3/16.
    close(secondary_order(2, 3).value(), 5.0 / 16.0, 1e-14);
    close(secondary_order(500, 500).value(), 0.5, 1e-10);
    close(secondary_order(1, 10_000).ln(), -10_000.0 * std::f64::consts::LN_2, 1e-12);
}

#[test]
fn equation_three_approximates_the_exact_value() {
    // Φ by its series; b is large, so the normal approximation is off by O(1/√b).
    let phi = |z: f64| {
        let (mut term, mut sum) = (z, z);
        for i in 1..200 {
            term *= -z * z * (2.0 * f64::from(i) - 1.0) / (2.0 * f64::from(i) * (2.0 * f64::from(i) + 1.0));
            sum += term;
        }
        0.5 + sum / (2.0 * std::f64::consts::PI).sqrt()
    };
    for (a, b) in [(9_900_u64, 10_000_u64), (9_700, 10_000), (10_000, 10_000)] {
        let z = (a as f64 - b as f64) / (2.0 * b as f64).sqrt();
        let exact = secondary_order(a, b).value();
        assert!((exact - phi(z)).abs() < 0.005, "a={a} b={b}: {exact} against {}", phi(z));
    }
}
