//! When a scenario is over by the clock.
//!
//! A duration is the time that tests run. It begins when the first host has started them, so that a machine on which
//! loading takes long still runs what it was asked to; the campaign's own end is fixed, and what later scenarios need of
//! the time before it is theirs.

use std::time::{Duration, Instant};

/// The end of a scenario, known once its tests run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    /// The campaign's, less what later scenarios need.
    fixed: Option<Instant>,
    duration: Option<Duration>,
    /// None until the tests have been started, and where there is no duration.
    own: Option<Instant>,
}

impl Deadline {
    /// So long after the tests were started, and never after `end`.
    pub(crate) fn new(end: Option<Instant>, duration: Option<Duration>) -> Deadline {
        Deadline { fixed: end, duration, own: None }
    }

    /// The end of a part of it.
    pub(crate) fn of_turn(&self, until: Option<Instant>) -> Deadline {
        Deadline { fixed: self.fixed, duration: None, own: until }
    }

    /// Says that the tests run. Only the first time counts.
    pub(crate) fn tests_run(&mut self, now: Instant) {
        if self.own.is_none() {
            self.own = self.duration.map(|duration| now + duration);
        }
    }

    /// Something else than running tests took so long.
    pub(crate) fn put_off(&mut self, by: Duration) {
        self.own = self.own.map(|own| own + by);
    }

    /// How long it may be put off at most, and so how long other things than running tests may take: as long again as tests
    /// run. Where that is not left of the campaign, it comes from the tests' own time, and is little.
    pub(crate) fn room(&self, now: Instant) -> Duration {
        const LITTLE: u32 = 10;
        let left = |end: Instant| end.saturating_duration_since(now);
        match (self.duration, self.fixed) {
            (Some(duration), Some(fixed)) => {
                let own = self.own.unwrap_or(now + duration);
                let behind = fixed.saturating_duration_since(own);
                behind.clamp(duration.min(left(fixed)) / LITTLE, duration)
            }
            (Some(duration), None) => duration,
            (None, Some(fixed)) => left(fixed) / LITTLE,
            (None, None) => Duration::MAX,
        }
    }

    /// The end, as far as it is known.
    pub(crate) fn end(&self) -> Option<Instant> {
        match (self.fixed, self.own) {
            (Some(fixed), Some(own)) => Some(fixed.min(own)),
            (fixed, own) => fixed.or(own),
        }
    }

    /// Whether it is over.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        self.end().is_some_and(|end| now >= end)
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
    #[test]
    fn what_is_no_running_of_tests_puts_the_end_off_as_far_as_there_is_room() {
        let start = Instant::now();
        let mut deadline = Deadline::new(None, Some(6 * SECOND));
        deadline.tests_run(start);
        assert_eq!(deadline.room(start), 6 * SECOND);
        let mut turn = deadline.of_turn(Some(start + 2 * SECOND));
        turn.put_off(SECOND);
        deadline.put_off(SECOND);
        assert!(!turn.is_over(start + 2 * SECOND) && turn.is_over(start + 3 * SECOND));
        assert!(!deadline.is_over(start + 6 * SECOND) && deadline.is_over(start + 7 * SECOND));
        // The campaign's end is not put off.
        let mut tight = Deadline::new(Some(start + 8 * SECOND), Some(6 * SECOND));
        tight.tests_run(start);
        assert_eq!(tight.room(start), 2 * SECOND);
        tight.put_off(5 * SECOND);
        assert!(tight.is_over(start + 8 * SECOND));
        let full = Deadline::new(Some(start + 6 * SECOND), Some(6 * SECOND));
        assert_eq!(full.room(start), SECOND * 6 / 10);
        assert_eq!(Deadline::new(Some(start + 20 * SECOND), None).room(start), 2 * SECOND);
        assert_eq!(Deadline::new(None, None).room(start), Duration::MAX);
    }
}
