//! What was observed, when, and after how many iterations: a bounded memory that grows coarser with age.

use std::time::Duration;

/// Points kept. When they are used up the older half is thinned to every second point, so the recent past
/// stays sharp and the beginning is never forgotten.
const CAPACITY: usize = 1024;

/// One observation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) time: Duration,
    pub(super) iterations: u64,
    pub(super) value: u64,
}

/// Observations in order of time; iterations never fall.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    points: Vec<Point>,
}

impl History {
    /// Adds an observation. One that is not later than the last, or has fewer iterations, is ignored: it
    /// comes from a torn or repeated reading.
    pub(super) fn push(&mut self, point: Point) {
        if let Some(last) = self.points.last()
            && (point.time <= last.time || point.iterations < last.iterations)
        {
            return;
        }
        if self.points.len() == CAPACITY {
            self.thin();
        }
        self.points.push(point);
    }

    /// When observation began.
    pub(super) fn start(&self) -> Option<Duration> {
        self.points.first().map(|point| point.time)
    }

    /// Iterations done at a time, between observations by straight line.
    pub(super) fn iterations_at(&self, time: Duration) -> f64 {
        let after = self.points.partition_point(|point| point.time <= time);
        let Some(before) = after.checked_sub(1).map(|index| self.points[index]) else {
            return self.points.first().map_or(0.0, |point| point.iterations as f64);
        };
        let Some(next) = self.points.get(after) else { return before.iterations as f64 };
        let step = (next.time - before.time).as_secs_f64();
        let part = (time - before.time).as_secs_f64() / step;
        before.iterations as f64 + part * (next.iterations - before.iterations) as f64
    }

    /// The observations before a time, and the others.
    pub(super) fn split_at(&self, time: Duration) -> (&[Point], &[Point]) {
        self.points.split_at(self.points.partition_point(|point| point.time < time))
    }

    /// Halves the older half. Of each pair the later point stays, with the lower value of the two: minima
    /// are what the trend test looks at.
    fn thin(&mut self) {
        let recent = self.points.split_off(CAPACITY / 2);
        let first = self.points[0];
        let kept = self.points.chunks(2).map(|pair| {
            let last = pair[pair.len() - 1];
            Point { value: pair.iter().map(|point| point.value).min().unwrap_or(last.value), ..last }
        });
        self.points = std::iter::once(first).chain(kept).chain(recent).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(second: u64, iterations: u64) -> Point {
        Point { time: Duration::from_secs(second), iterations, value: second % 7 }
    }

    #[test]
    fn between_points_iterations_are_interpolated() {
        let mut history = History::default();
        history.push(point(10, 100));
        history.push(point(20, 300));
        for (second, expected) in [(5, 100.0), (10, 100.0), (15, 200.0), (20, 300.0), (99, 300.0)] {
            assert_eq!(history.iterations_at(Duration::from_secs(second)), expected);
        }
    }

    #[test]
    fn a_week_of_observations_stays_small_and_keeps_both_ends() {
        let mut history = History::default();
        for second in 0..604_800 {
            history.push(point(second, second * 3));
        }
        assert!(history.points.len() <= CAPACITY);
        assert_eq!(history.start(), Some(Duration::ZERO));
        assert_eq!(history.split_at(Duration::from_secs(604_800 - 400)).1.len(), 400);
        let middle = history.iterations_at(Duration::from_secs(300_000));
        assert!((middle - 900_000.0).abs() < 1.0, "{middle}");
        assert!(history.points.is_sorted_by(|earlier, later| earlier.time < later.time || earlier == later));
    }

    #[test]
    fn nonsense_is_ignored() {
        let mut history = History::default();
        history.push(point(10, 100));
        history.push(point(10, 200));
        history.push(point(11, 50));
        assert_eq!(history.points, [point(10, 100)]);
    }
}
