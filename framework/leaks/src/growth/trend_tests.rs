use super::*;
use std::time::Duration;

fn points(values: impl IntoIterator<Item = u64>) -> Vec<Point> {
    let numbered = values.into_iter().enumerate();
    numbered
        .map(|(second, value)| Point {
            time: Duration::from_secs(second as u64),
            iterations: second as u64 * 10,
            value,
        })
        .collect()
}

#[test]
fn inversions_have_the_known_distribution() {
    let orders: f64 = (1..=BLOCKS).map(|size| size as f64).product();
    // The first coefficients of the product of (1 + x + … + x^(m-1)) for m up to 16.
    for (limit, count) in [(0, 1.0), (1, 16.0), (2, 135.0), (3, 799.0)] {
        let probability = at_most_inversions(limit);
        assert!((probability * orders - count).abs() < 1e-6 * count, "{limit}: {}", probability * orders);
    }
    assert!((at_most_inversions(BLOCKS * (BLOCKS - 1) / 2) - 1.0).abs() < 1e-12);
    assert!(at_most_inversions(4) < 2e-10);
}

#[test]
fn a_straight_line_rises() {
    let trend = rising(&[], &points((0..64).map(|second| 5 + second * 3)), 32).expect("rising");
    assert!(trend.p_value < 1e-13);
    assert!((trend.per_second - 3.0).abs() < 1e-9 && (trend.per_iteration - 0.3).abs() < 1e-9, "{trend:?}");
    assert_eq!(trend.growth, 60 * 3);
}

#[test]
fn up_and_down_within_a_block_leaves_no_trace() {
    let saw = points((0..64).map(|second| 100 + second % 4 * 50));
    assert_eq!(rising(&[], &saw, 32), None);
    let rising_saw = points((0..64).map(|second| second * 2 + second % 4 * 50));
    assert!(rising(&[], &rising_saw, 32).is_some_and(|trend| trend.p_value < 1e-9));
}

#[test]
fn what_falls_once_does_not_keep_rising() {
    let cleared = points((0..64).map(|second| if second < 40 { second * 10 } else { (second - 40) * 10 }));
    assert!(rising(&[], &cleared, 32).is_none_or(|trend| trend.p_value > 1e-3));
}

#[test]
fn a_fill_slows_down() {
    for constant in [5.0, 20.0, 40.0] {
        let fill = |second: u64| (1e6 * (1.0 - (-(second as f64) / constant).exp())) as u64;
        assert_eq!(rising(&[], &points((0..64).map(fill)), 32), None, "{constant}");
    }
}

#[test]
fn equal_values_are_no_growth() {
    assert_eq!(rising(&[], &points([7; 64]), 32), None);
    let steps = points((0..64).map(|second| second / 32));
    assert!(rising(&[], &steps, 32).is_none_or(|trend| trend.p_value > 1e-3));
}

#[test]
fn too_little_is_no_answer() {
    assert_eq!(rising(&[], &points(0..10), 1), None);
    assert_eq!(rising(&[], &[], 1), None);
    let still: Vec<Point> = points(0..64).into_iter().map(|point| Point { iterations: 5, ..point }).collect();
    assert_eq!(rising(&[], &still, 1), None);
}

/// Half of a long saw-tooth is a straight line, until it has been seen before.
#[test]
fn what_only_comes_back_is_no_growth() {
    let saw = points((0..164).map(|second| second % 100 * 10));
    assert!(rising(&[], &saw[100..], 32).is_some_and(|trend| trend.p_value < 1e-13));
    assert_eq!(rising(&saw[..100], &saw[100..], 32), None);
    // A single peak is not where it has been.
    let peak = points((0..164).map(|second| if second == 50 { 10_000 } else { second }));
    assert!(rising(&peak[..100], &peak[100..], 32).is_some_and(|trend| trend.p_value < 1e-13));
}
