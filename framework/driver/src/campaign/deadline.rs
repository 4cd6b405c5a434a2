//! When a scenario is over by the clock.
//!
//! A duration is the time that tests run. It begins when the first host has started them, so that a machine on which
//! loading takes long still runs what it was asked to; the campaign's own end is fixed, and what later scenarios need of
//! the time before it is theirs.

use std::time::{Duration, Instant};

/// The end of a scenario, known once its tests run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    end: Option<Instant>,
    /// Not counted yet: the tests have not been started.
    duration: Option<Duration>,
}

impl Deadline {
    /// So long after the tests were started, and never after `end`.
    pub(crate) fn new(end: Option<Instant>, duration: Option<Duration>) -> Deadline {
        Deadline { end, duration }
    }

    /// Says that the tests run. Only the first time counts.
    pub(crate) fn tests_run(&mut self, now: Instant) {
        if let Some(duration) = self.duration.take() {
            let own = now + duration;
            self.end = Some(self.end.map_or(own, |end| end.min(own)));
        }
    }

    /// The end, as far as it is known.
    pub(crate) fn end(&self) -> Option<Instant> {
        self.end
    }

    /// Whether it is over.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        self.end.is_some_and(|end| now >= end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_duration_begins_with_the_first_host_that_runs_tests() {
        let start = Instant::now();
        let mut deadline = Deadline::new(None, Some(2 * SECOND));
        assert!(!deadline.is_over(start + 100 * SECOND), "still loading");
        deadline.tests_run(start + 10 * SECOND);
        deadline.tests_run(start + 11 * SECOND);
        assert!(!deadline.is_over(start + 11 * SECOND));
        assert!(deadline.is_over(start + 12 * SECOND));
    }

    #[test]
    fn the_campaigns_end_cuts_it_short() {
        let start = Instant::now();
        let mut deadline = Deadline::new(Some(start + SECOND), Some(5 * SECOND));
        assert!(deadline.is_over(start + SECOND), "while loading, too");
        deadline.tests_run(start);
        assert!(deadline.is_over(start + SECOND));
        let mut early = Deadline::new(Some(start + 9 * SECOND), Some(5 * SECOND));
        early.tests_run(start);
        assert!(early.is_over(start + 5 * SECOND));
        assert!(!Deadline::new(None, None).is_over(start));
    }
}
