//! How a failure stands against earlier nights: new, ongoing, rare or resolved. Pure.
//!
//! Only nights count in which the failure's test ran. A failure is **new** in the first night that shows it. It is
//! **resolved** when it has stayed away for so many nights that this would be chance in less than one case of twenty if
//! nothing had changed: with the rate of Laplace's rule of succession, (s + 1) / (n + 2) for s of the n nights from its
//! first to its last sighting, c clean nights have the probability (1 − rate)^c. So what came every night is resolved
//! after two clean ones, and what came in one night of ten after seventeen. Until then it is **rare** when at most one
//! night of three showed it, and **ongoing** otherwise.

use waylay_report::model::FailureState;

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
}

impl Sightings {
    /// The probability of so many clean nights if nothing had changed.
    pub fn chance(self) -> f64 {
        let span = self.span.max(self.seen);
        let rate = (f64::from(self.seen) + 1.0) / (f64::from(span) + 2.0);
        (1.0 - rate).powf(f64::from(self.clean))
    }

    /// How many more clean nights make it resolved.
    pub fn nights_to_resolve(self) -> u32 {
        let one = Sightings { clean: 1, ..self }.chance();
        ((CHANCE.ln() / one.ln()).ceil() as u32).max(1).saturating_sub(self.clean)
    }

    /// How it stands.
    pub fn state(self) -> FailureState {
        if self.clean > 0 && self.chance() < CHANCE {
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
        Sightings { seen, span, clean }.state()
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
        let rare = Sightings { seen: 2, span: 20, clean: 0 };
        assert_eq!(rare.state(), FailureState::Rare);
        assert_eq!(state(1, 10, 16), FailureState::Rare);
        assert_eq!(state(1, 10, 17), FailureState::Resolved);
        assert_eq!(Sightings { seen: 1, span: 10, clean: 3 }.nights_to_resolve(), 14);
    }

    #[test]
    fn coming_back_after_it_was_resolved_is_not_new() {
        assert_eq!(state(2, 30, 0), FailureState::Rare);
        assert_eq!(state(20, 30, 0), FailureState::Ongoing);
    }

    proptest! {
        #[test]
        fn clean_nights_only_ever_lead_to_resolved_and_the_announced_number_is_right(
            seen in 1u32..200, more in 0u32..400, clean in 0u32..400,
        ) {
            let now = Sightings { seen, span: seen + more, clean };
            let left = now.nights_to_resolve();
            prop_assert_eq!(left == 0 && clean > 0, now.state() == FailureState::Resolved);
            let then = Sightings { clean: clean + left.max(1), ..now };
            prop_assert_eq!(then.state(), FailureState::Resolved);
            let before = Sightings { clean: (clean + left).saturating_sub(1), ..now };
            prop_assert!(left == 0 || before.state() != FailureState::Resolved);
        }
    }
}
