//! What the randomizer did and what that guarantees, in words.

use std::fmt::Write as _;
use std::time::Duration;

use waylay_report::escape::Name;

use super::numbers::{count, plural, span};
use crate::record::{BoundRecord, RandomizerRecord, TestRecord};

/// Threads that the summary lists by name; the record has the rest.
const NAMES_SHOWN: usize = 6;

/// How it goes, as part of a line. `rate` is in suspensions per second.
pub(super) fn suspension_text(record: &RandomizerRecord, rate: f64) -> String {
    let mut text = format!("{} suspensions/s", count(rate as u64));
    let threads = record.most_to_choose_from;
    if threads > 0 && record.seconds > 0.0 {
        let share = record.suspended_s / record.seconds / threads as f64;
        let _ =
            write!(text, " (each of {} held {:.0} % of the time", plural(threads, "thread"), share * 100.0);
        let _ = write!(text, ", {} never)", count(record.never_suspended));
    }
    if let Some(tracer) = &record.refused_for {
        let _ = write!(text, ", refused: traced by {}", Name(tracer));
    }
    text
}

/// Lines of the summary about a scenario's randomizers.
pub(super) fn suspension_lines(record: &RandomizerRecord) -> Vec<String> {
    let counts = &record.counts;
    let mut lines = vec![format!(
        "randomizer: {} in {} ({} suspensions/s), threads stood still for {} in all, {} never suspended",
        plural(counts.suspensions, "suspension"),
        span(Duration::from_secs_f64(record.seconds)),
        count(record.suspensions_per_s as u64),
        span(Duration::from_secs_f64(record.suspended_s)),
        plural(record.never_suspended, "thread"),
    )];
    if let (Some(stop), Some(hold)) = (record.stop, record.hold) {
        lines.push(format!(
            "randomizer: stopped after {} (p99 {}), held {} (p99 {})",
            micros(stop.p50_us),
            micros(stop.p99_us),
            micros(hold.p50_us),
            micros(hold.p99_us)
        ));
    }
    let mut trouble = Vec::new();
    for (number, what) in [
        (record.restarted, "started again after an early end"),
        (record.killed, "killed because it did not let go"),
        (counts.refused, "refused a thread"),
        (counts.unstoppable, "found a thread that does not stop"),
    ] {
        if number > 0 {
            trouble.push(format!("{what}: {}", plural(number, "time")));
        }
    }
    if let Some(tracer) = &record.refused_for {
        trouble.push(format!("last traced by {}", Name(tracer)));
    }
    if !trouble.is_empty() {
        lines.push(format!("randomizer: {}", trouble.join(", ")));
    }
    for thread in record.threads.iter().take(NAMES_SHOWN) {
        lines.push(format!(
            "  {:<16} suspended {}, {} in all{}",
            if thread.threads > 1 {
                format!("{} × {}", Name(&thread.name), count(thread.threads))
            } else {
                Name(&thread.name).to_string()
            },
            plural(thread.suspensions, "time"),
            span(Duration::from_secs_f64(thread.suspended_s)),
            if thread.never_suspended > 0 {
                format!(", {} never", count(thread.never_suspended))
            } else {
                String::new()
            },
        ));
    }
    if record.threads.len() > NAMES_SHOWN {
        lines.push(format!("  and threads of {} other names", record.threads.len() - NAMES_SHOWN));
    }
    lines
}

fn micros(us: f64) -> String {
    span(Duration::from_secs_f64(us / 1e6))
}

/// The line about what is guaranteed for a test; none when its scenario was not randomized.
pub(super) fn bound_line(test: &TestRecord) -> Option<String> {
    match (&test.bound, &test.no_bound) {
        (Some(bound), _) => Some(bound_text(bound, test.iterations)),
        (None, Some(reason)) => Some(format!("no bound: {reason}")),
        (None, None) => None,
    }
}

fn bound_text(bound: &BoundRecord, iterations: u64) -> String {
    let mut text = format!(
        "bound: an iteration shows a bug of depth one with at least {} (N = {}, MINTP = {}), {} with at least {}",
        percent(bound.per_iteration),
        bound.threads,
        span(Duration::from_nanos(bound.min_test_ns)),
        plural(iterations, "independent iteration"),
        percent(bound.after_all),
    );
    if !bound.broken_assumptions.is_empty() {
        let _ = write!(text, "; NOT KEPT: {}", bound.broken_assumptions.join("; "));
    }
    text
}

/// A probability that is rounded down, never up to certainty.
fn percent(probability: f64) -> String {
    let percent = probability * 100.0;
    if percent >= 1.0 {
        // A probability so near to one that no number tells them apart is still none.
        format!("{:.1} %", ((percent * 10.0).floor() / 10.0).min(99.9))
    } else {
        format!("{percent:.2e} %")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_never_rounded_up() {
        assert_eq!(percent(0.999_999), "99.9 %");
        assert_eq!(percent(1.0), "99.9 %");
        assert_eq!(percent(0.0125), "1.2 %");
        assert_eq!(percent(0.000_012_5), "1.25e-3 %");
    }

    #[test]
    fn a_broken_assumption_is_said() {
        let bound = BoundRecord {
            threads: 4,
            min_test_ns: 40_000,
            per_iteration: 0.00125,
            after_all: 0.7138,
            broken_assumptions: vec!["one thread is suspended at a time".to_owned()],
        };
        assert_eq!(
            bound_text(&bound, 1000),
            "bound: an iteration shows a bug of depth one with at least 1.25e-1 % (N = 4, MINTP = 40.0 µs), \
             1,000 independent iterations with at least 71.3 %; NOT KEPT: one thread is suspended at a time"
        );
    }
}
