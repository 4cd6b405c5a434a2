//! How a leak grew, as a curve that is kept with it. Pure.

use std::time::Duration;

use waylay_leaks::Resource;
use waylay_leaks::region::LiveSample;
use waylay_leaks::usage::UsageCounts;
use waylay_report::model::Growth;

/// Points of a curve: more than a chart has columns for. Of twice as many every other one goes.
const POINTS: usize = 240;

/// What a process had, read again and again.
#[derive(Debug, Default)]
pub(crate) struct Readings {
    all: Vec<(f64, UsageCounts)>,
    /// Readings since the last that was kept, and how many of them are passed over.
    passed: usize,
    apart: usize,
}

impl Readings {
    pub(crate) fn push(&mut self, at: Duration, counts: UsageCounts) {
        self.passed += 1;
        if self.passed < self.apart.max(1) {
            return;
        }
        self.passed = 0;
        self.all.push((at.as_secs_f64(), counts));
        if self.all.len() >= 2 * POINTS {
            let mut number = 0;
            self.all.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.apart = self.apart.max(1) * 2;
        }
    }

    /// The curve of one resource.
    pub(crate) fn curve(&self, resource: Resource, of: &str) -> Growth {
        let value = |counts: &UsageCounts| match resource {
            Resource::Memory => counts.resident,
            Resource::Descriptors => counts.descriptors,
            Resource::Threads => counts.threads,
        };
        Growth {
            of: of.to_owned(),
            points: self.all.iter().map(|(at, counts)| (*at, value(counts) as f64)).collect(),
        }
    }
}

/// What is alive of one place, by when it was allocated: what was freed is in no point.
pub(crate) fn of_survivors(live: &[LiveSample], began: Duration) -> Growth {
    let mut samples: Vec<(Duration, u64)> = live.iter().map(|sample| (sample.born, sample.weight)).collect();
    samples.sort_unstable();
    let mut sum = 0.0;
    let all: Vec<(f64, f64)> = samples
        .into_iter()
        .map(|(born, weight)| {
            sum += weight as f64;
            (born.saturating_sub(began).as_secs_f64(), sum)
        })
        .collect();
    let apart = all.len().div_ceil(POINTS).max(1);
    let last = all.len().saturating_sub(1);
    let kept = all.into_iter().enumerate().filter(|(place, _)| place % apart == 0 || *place == last);
    Growth { of: "bytes that are never freed".to_owned(), points: kept.map(|(_, point)| point).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survivors_add_up_in_the_order_of_their_birth() {
        let at = |second: u64, weight: u64| LiveSample { born: Duration::from_secs(second), size: 1, weight };
        let curve = of_survivors(&[at(12, 5), at(11, 7), at(13, 1)], Duration::from_secs(10));
        assert_eq!(curve.points, [(1.0, 7.0), (2.0, 12.0), (3.0, 13.0)]);
        let many: Vec<LiveSample> = (0..10_000).map(|second| at(second, 1)).collect();
        let curve = of_survivors(&many, Duration::ZERO);
        assert!(curve.points.len() <= POINTS + 1, "{}", curve.points.len());
        assert_eq!(curve.points.last(), Some(&(9999.0, 10_000.0)), "the last is what is alive now");
    }

    #[test]
    fn readings_stay_few_and_reach_from_the_beginning_to_now() {
        let mut readings = Readings::default();
        for second in 0..100_000 {
            let counts = UsageCounts { resident: 0, descriptors: second, threads: 1 };
            readings.push(Duration::from_secs(second), counts);
        }
        let curve = readings.curve(Resource::Descriptors, "open descriptors");
        assert!((POINTS / 2..2 * POINTS).contains(&curve.points.len()), "{}", curve.points.len());
        assert_eq!(curve.points[0], (0.0, 0.0));
        assert!(curve.points.last().unwrap().0 > 99_000.0, "{:?}", curve.points.last());
        assert!(curve.points.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
