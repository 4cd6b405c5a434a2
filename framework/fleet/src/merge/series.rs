//! Counters of several parts over time, as one series: parts that ran at the same time are added up.

use jiff::Timestamp;
use waylay_report::model::Sample;

/// Samples that are kept of a part.
const OF_A_PART: usize = 48;
/// Samples of the whole.
const OF_ALL: usize = 400;

/// A few of the samples, the last always among them. Thinning twice changes nothing.
pub(super) fn thin(samples: &[Sample]) -> Vec<Sample> {
    if samples.len() <= OF_A_PART {
        return samples.to_vec();
    }
    let last = samples.len() - 1;
    (0..OF_A_PART).map(|place| samples[place * last / (OF_A_PART - 1)]).collect()
}

/// All parts together, each with its beginning and its samples, on the clock of a night that began at `started`.
pub(super) fn together(parts: &[(Timestamp, &[Sample])], started: Timestamp) -> Vec<Sample> {
    let mut events: Vec<(f64, usize, Sample)> = Vec::new();
    for (place, (began, samples)) in parts.iter().enumerate() {
        let offset = began.duration_since(started).as_secs_f64().max(0.0);
        events.extend(samples.iter().map(|sample| (offset + sample.at_s, place, *sample)));
    }
    events.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut now = vec![Sample::default(); parts.len()];
    let mut sum = Sample::default();
    let every = events.len().div_ceil(OF_ALL).max(1);
    let mut series = Vec::new();
    let count = events.len();
    for (number, (at_s, place, sample)) in events.into_iter().enumerate() {
        let before = std::mem::replace(&mut now[place], sample);
        let grow = |sum: &mut u64, before: u64, after: u64| *sum = (*sum + after).saturating_sub(before);
        grow(&mut sum.iterations, before.iterations, sample.iterations);
        grow(&mut sum.schedules, before.schedules, sample.schedules);
        grow(&mut sum.failures, before.failures, sample.failures);
        grow(&mut sum.suspensions, before.suspensions, sample.suspensions);
        // Different failures of different parts may be the same: the most that one part has seen is what is sure.
        sum.signatures = sum.signatures.max(sample.signatures);
        if number % every == 0 || number + 1 == count {
            series.push(Sample { at_s, ..sum });
        }
    }
    series
}
