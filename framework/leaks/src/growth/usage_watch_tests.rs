use super::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Feeds one reading per second and returns what was found, with the second.
fn run(seconds: u64, counts: impl Fn(u64) -> UsageCounts) -> Vec<(u64, GrowthFinding)> {
    let mut watch = UsageWatch::new(LeakPolicy::default());
    let mut found = Vec::new();
    for second in 0..=seconds {
        let time = Duration::from_secs(5_000 + second);
        found.extend(
            watch.observe(time, second * 50, &counts(second)).into_iter().map(|finding| (second, finding)),
        );
    }
    found
}

fn noise(second: u64, range: u64) -> u64 {
    ChaCha8Rng::seed_from_u64(second).random_range(0..range)
}

#[test]
fn a_descriptor_per_iteration_is_found_within_a_minute() {
    let found = run(60, |second| UsageCounts {
        resident: 50 << 20,
        descriptors: 10 + second * 50 + noise(second, 20),
        threads: 4,
    });
    assert_eq!(found.len(), 1, "{found:?}");
    let (second, finding) = found[0];
    assert_eq!((finding.resource, second <= 45), (Resource::Descriptors, true));
    assert!((finding.per_iteration - 1.0).abs() < 0.05, "{finding:?}");
    assert!(finding.false_alarms_per_hour < 1e-6);
}

#[test]
fn a_thread_every_ten_seconds_is_found_later() {
    let found = run(900, |second| UsageCounts {
        resident: 0,
        descriptors: 3,
        threads: 5 + second / 10 + noise(second, 3),
    });
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].1.resource, Resource::Threads);
    assert!(found[0].0 <= 600, "{found:?}");
}

#[test]
fn memory_that_grows_is_found() {
    let found = run(60, |second| UsageCounts {
        resident: (100 << 20) + second * (1 << 20) + noise(second, 1 << 19),
        descriptors: 3,
        threads: 2,
    });
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].1.resource, Resource::Memory);
    assert!((found[0].1.per_second / f64::from(1 << 20) - 1.0).abs() < 0.1, "{found:?}");
}

/// Four hours of healthy use. The policy allows 4e-6 findings in that time.
#[test]
fn healthy_use_is_never_found() {
    let found = run(4 * 3600, |second| UsageCounts {
        // Fills for a while, is cleared every fifteen seconds.
        resident: (100 << 20) + second.min(18) * (8 << 20) + second % 15 * (1 << 20) + noise(second, 1 << 22),
        descriptors: 20 + noise(second, 30),
        threads: 8 + noise(second, 5),
    });
    assert_eq!(found, []);
}

#[test]
fn each_resource_is_reported_once() {
    let found =
        run(600, |second| UsageCounts { resident: second << 20, descriptors: second, threads: second });
    assert_eq!(found.len(), 3);
}
