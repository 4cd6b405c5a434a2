//! How long failures of a scenario are explained: minimised, and their cause sought.
//!
//! Nobody runs tests meanwhile. So that a mix finds what it would find without explanations, what they take is given back to the
//! tests, and is bounded for all failures of a scenario together. Pure.

use std::time::Duration;

use crate::config::Minimizing;

/// Less than that is not begun.
const LEAST: Duration = Duration::from_millis(100);

/// What is left of a scenario's time for explanations, and what they took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Explaining {
    left: Duration,
    taken: Duration,
}

impl Default for Explaining {
    fn default() -> Explaining {
        Explaining::within(Duration::MAX)
    }
}

impl Explaining {
    /// At most so long, for all failures together.
    pub(crate) fn within(room: Duration) -> Explaining {
        Explaining { left: room, taken: Duration::ZERO }
    }

    /// How much of what is wanted for one failure it gets, and how long that may take by the clock.
    pub(crate) fn grant(&self, wanted: Minimizing) -> (Minimizing, Duration) {
        let granted = wanted.0.map(|time| time.min(self.left)).filter(|_| self.left >= LEAST);
        (Minimizing(granted), self.left)
    }

    /// One took so long.
    pub(crate) fn took(&mut self, time: Duration) {
        self.left = self.left.saturating_sub(time);
        self.taken += time;
    }

    /// How long all took.
    pub(crate) fn taken(&self) -> Duration {
        self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_failures_of_a_scenario_share_its_time_for_explanations() {
        const SECOND: Duration = Duration::from_secs(1);
        let wanted = Minimizing(Some(5 * SECOND));
        let mut explaining = Explaining::within(6 * SECOND);
        assert_eq!(explaining.grant(wanted), (wanted, 6 * SECOND));
        explaining.took(4 * SECOND);
        assert_eq!(explaining.grant(wanted), (Minimizing(Some(2 * SECOND)), 2 * SECOND));
        explaining.took(3 * SECOND);
        assert_eq!(explaining.grant(wanted).0, Minimizing(None));
        assert_eq!(explaining.taken(), 7 * SECOND);
        assert_eq!(Explaining::default().grant(Minimizing(None)).0, Minimizing(None));
    }
}
