//! How a failure stands against earlier nights: new, ongoing, rare or resolved. Pure.
//!
//! Only nights count in which the failure's test ran. A failure is **new** in the first night that shows it. It is
//! **resolved** when two things hold:
//!
//! - It has stayed away for so many nights that this would be chance in less than one case of twenty if nothing had changed:
//!   with the rate of Laplace's rule of succession, (s + 1) / (n + 2) for s of the n nights from its first to its last
//!   sighting, c clean nights have the probability (1 − rate)^c. So what came every night asks for two clean ones, and what
//!   came in one night of ten for seventeen.
//! - Its test ran so often in them that it would have shown, by the rule of reports and of `waylay verify`
//!   ([`waylay_report::confidence`]). Only runs count of the way that showed it most often: of its scenario, in its mode and with
//!   its strategy. A night that ended after thirteen iterations says little of what comes once in a hundred.
//!
//! Nights alone are blind to how much was run in them; runs alone are blind to a machine that was another one in the night
//! that showed it. Until both hold the failure is **rare** when at most one night of three showed it, and **ongoing** otherwise.

use waylay_report::confidence::{SURE, clean_runs_for};
use waylay_report::model::{FailureState, Reproduction};

/// The probability below which staying away is no longer taken for chance.
const CHANCE: f64 = 0.05;

/// How often a failure was seen, in nights in which its test ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sightings {
    /// Nights that showed it; at least one.
    pub seen: u32,
    /// Nights from the first that showed it to the last, both included.
    pub span: u32,
    /// Nights after the last that showed it.
    pub clean: u32,
    /// How often its test ran in them. None for a failure of no test: it comes at no known rate, and nights are all there is.
    pub runs: Option<Runs>,
}

/// How often a failure's test ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runs {
    /// How often the failure came.
    pub failed: u64,
    /// Runs in the nights from the first that showed it to the last.
    pub span: u64,
    /// Runs in the nights after that.
    pub clean: u64,
}

impl Runs {
    /// How many more clean runs make it 95 % sure that it would have shown.
    pub fn to_resolve(self) -> u64 {
        // A run that broke before it was counted was one all the same.
        let failed = self.failed.max(1);
        let seen = Reproduction { reproduced: failed, runs: self.span.max(failed), seconds: 0.0 };
        clean_runs_for(&seen, SURE).map_or(u64::MAX, |needed| needed.saturating_sub(self.clean))
    }
}

impl Sightings {
    /// The probability of so many clean nights if nothing had changed.
    pub fn chance(self) -> f64 {
        let span = self.span.max(self.seen);
        let rate = (f64::from(self.seen) + 1.0) / (f64::from(span) + 2.0);
        (1.0 - rate).powf(f64::from(self.clean))
    }

    /// How many more clean nights it takes; the runs in them have to be enough as well.
    pub fn nights_to_resolve(self) -> u32 {
        let one = Sightings { clean: 1, ..self }.chance();
        ((CHANCE.ln() / one.ln()).ceil() as u32).max(1).saturating_sub(self.clean)
    }

    /// How many more clean runs it takes.
    pub fn runs_to_resolve(self) -> u64 {
        self.runs.map_or(0, Runs::to_resolve)
    }

    /// How it stands.
    pub fn state(self) -> FailureState {
        let away = self.clean > 0 && self.chance() < CHANCE;
        if away && self.runs_to_resolve() == 0 {
            FailureState::Resolved
        } else if self.seen <= 1 && self.clean == 0 {
            FailureState::New
        } else if u64::from(self.seen) * 3 <= u64::from(self.span) + u64::from(self.clean) {
            FailureState::Rare
        } else {
            FailureState::Ongoing
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn state(seen: u32, span: u32, clean: u32) -> FailureState {
        Sightings { seen, span, clean, runs: None }.state()
    }

    #[test]
    fn the_first_night_makes_it_new_and_the_second_ongoing() {
        assert_eq!(state(1, 1, 0), FailureState::New);
        assert_eq!(state(2, 2, 0), FailureState::Ongoing);
        assert_eq!(state(30, 30, 0), FailureState::Ongoing);
    }

    #[test]
    fn what_came_every_night_is_resolved_after_two_clean_ones() {
        assert_eq!(state(5, 5, 1), FailureState::Ongoing);
        assert_eq!(state(5, 5, 2), FailureState::Resolved);
    }

    #[test]
    fn what_came_once_needs_three() {
        assert_eq!(state(1, 1, 1), FailureState::Ongoing);
        assert_eq!(state(1, 1, 2), FailureState::Rare);
        assert_eq!(state(1, 1, 3), FailureState::Resolved);
    }

    #[test]
    fn what_came_in_one_night_of_ten_needs_seventeen() {
        let rare = Sightings { seen: 2, span: 20, clean: 0, runs: None };
        assert_eq!(rare.state(), FailureState::Rare);
        assert_eq!(state(1, 10, 16), FailureState::Rare);
        assert_eq!(state(1, 10, 17), FailureState::Resolved);
        assert_eq!(Sightings { seen: 1, span: 10, clean: 3, runs: None }.nights_to_resolve(), 14);
    }

    #[test]
    fn coming_back_after_it_was_resolved_is_not_new() {
        assert_eq!(state(2, 30, 0), FailureState::Rare);
        assert_eq!(state(20, 30, 0), FailureState::Ongoing);
    }

    /// Seen once in 45 runs: 1,455 clean ones are needed, however many nights they take.
    #[test]
    fn nights_that_ended_early_resolve_nothing() {
        let with = |clean: u32, runs: u64| Sightings {
            seen: 1,
            span: 1,
            clean,
            runs: Some(Runs { failed: 1, span: 45, clean: runs }),
        };
        assert_eq!(with(1, 13).state(), FailureState::Ongoing);
        assert_eq!(with(30, 13).state(), FailureState::Rare);
        assert_eq!((with(30, 13).nights_to_resolve(), with(30, 13).runs_to_resolve()), (0, 1442));
        assert_eq!(with(3, 1454).state(), FailureState::Rare);
        assert_eq!(with(3, 1455).state(), FailureState::Resolved);
        assert_eq!(with(2, 1_000_000).state(), FailureState::Rare, "two nights may be another machine");
    }

    #[test]
    fn what_broke_before_a_run_was_counted_has_a_rate_too() {
        assert_eq!(Runs { failed: 1, span: 0, clean: 0 }.to_resolve(), 33);
        assert_eq!(Runs { failed: 1, span: 1, clean: 33 }.to_resolve(), 0);
    }

    proptest! {
        #[test]
        fn clean_nights_only_ever_lead_to_resolved_and_the_announced_number_is_right(
            seen in 1u32..200, more in 0u32..400, clean in 0u32..400,
        ) {
            let now = Sightings { seen, span: seen + more, clean, runs: None };
            let left = now.nights_to_resolve();
            prop_assert_eq!(left == 0 && clean > 0, now.state() == FailureState::Resolved);
            let then = Sightings { clean: clean + left.max(1), ..now };
            prop_assert_eq!(then.state(), FailureState::Resolved);
            let before = Sightings { clean: (clean + left).saturating_sub(1), ..now };
            prop_assert!(left == 0 || before.state() != FailureState::Resolved);
        }
    }
}
