//! Limits by our own clock, whatever a host shows: so long may it take to begin, and to end when it was told to.
//!
//! Tests that are late are seen earlier, by their own limits. What is left is a host that shows nothing late and does not
//! get on: then what it shows is wrong.

use std::time::{Duration, Instant};

use waylay_page::{HostPhase, Layout};

use super::assignment::Assignment;
use crate::host::Contradiction;

/// What a host needs beside its tests, on a busy machine too.
const OWN_TIME: Duration = Duration::from_secs(30);
/// A pause between two looks that is longer was ours: we wrote a dump or had no processor. It is not the host's.
const LONGEST_LOOK: Duration = Duration::from_millis(100);
/// OnTestCancelled, the workers, OnTestEnd and DestroyInstance, each with the limit of its own.
const STEPS_TO_END: u32 = 4;

/// How long one host was waited for, and how long it may be.
pub(super) struct Patience {
    /// The most for its start, and for its end.
    start: Duration,
    end: Duration,
    /// What was used up of them.
    starting: Duration,
    ending: Duration,
    looked: Instant,
}

impl Patience {
    /// Patience with a host that runs these tests; what is late may be given `grace` to come back.
    pub(super) fn new(assignment: &Assignment, grace: Duration) -> Patience {
        let limits = &assignment.limits;
        // Plugins and tests come one after the other; tests end beside each other.
        let start: Duration = limits.iter().map(|limit| limit.start * 2).sum();
        let end = limits.iter().map(|limit| limit.cancel * STEPS_TO_END + limit.hang).max();
        Patience {
            start: start + OWN_TIME,
            end: end.unwrap_or_default() + grace + OWN_TIME,
            starting: Duration::ZERO,
            ending: Duration::ZERO,
            looked: Instant::now(),
        }
    }

    /// Counts the time since the last look.
    pub(super) fn look(&mut self, shown: &Layout, cancelled: Option<Instant>) -> Result<(), Contradiction> {
        let passed = self.looked.elapsed().min(LONGEST_LOOK);
        self.looked = Instant::now();
        self.count(passed, HostPhase::load(&shown.header.phase), cancelled.is_some())
    }

    fn count(&mut self, passed: Duration, phase: HostPhase, cancelled: bool) -> Result<(), Contradiction> {
        if phase < HostPhase::Running {
            self.starting += passed;
        }
        if cancelled {
            self.ending += passed;
        }
        let (used, most, what) = match cancelled {
            true => (self.ending, self.end, "did not end"),
            false => (self.starting, self.start, "did not begin"),
        };
        if used <= most {
            return Ok(());
        }
        let limit = most.as_secs();
        Err(Contradiction(format!("the host {what} within {limit} s, and shows nothing that is late")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patience() -> Patience {
        let second = Duration::from_secs(1);
        Patience {
            start: 3 * second,
            end: 2 * second,
            starting: Duration::ZERO,
            ending: Duration::ZERO,
            looked: Instant::now(),
        }
    }

    #[test]
    fn a_host_that_shows_nothing_late_is_given_up_by_our_own_clock() {
        let second = Duration::from_secs(1);
        let mut starting = patience();
        let looks =
            (0..10).take_while(|_| starting.count(second, HostPhase::Starting, false).is_ok()).count();
        assert_eq!(looks, 3);
        let mut ending = patience();
        assert!(
            (0..100).all(|_| ending.count(second, HostPhase::Running, false).is_ok()),
            "for ever, if wanted"
        );
        let looks = (0..10).take_while(|_| ending.count(second, HostPhase::Running, true).is_ok()).count();
        assert_eq!(looks, 2);
    }
}
