//! When a campaign has told what it can and ends before its time. Pure.

use std::time::{Duration, Instant};

/// What ends a campaign early; what is none does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// So many different failures.
    pub failures: Option<u64>,
    /// No new failure for so long.
    pub nothing_new_for: Option<Duration>,
}

/// How a campaign stands against them.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    conditions: Conditions,
    different: u64,
    last_new: Instant,
}

impl Watch {
    /// Begins with a campaign.
    pub fn new(conditions: Conditions, now: Instant) -> Watch {
        Watch { conditions, different: 0, last_new: now }
    }

    /// A failure that this campaign had not seen before.
    pub fn failure(&mut self, now: Instant) {
        self.different += 1;
        self.last_new = now;
    }

    /// Why the campaign is to end now, if it is.
    pub fn reason(&self, now: Instant) -> Option<&'static str> {
        let Conditions { failures, nothing_new_for } = self.conditions;
        if failures.is_some_and(|most| self.different >= most) {
            Some("as many different failures as were asked for")
        } else if nothing_new_for.is_some_and(|time| now.duration_since(self.last_new) >= time) {
            Some("nothing new for as long as was asked for")
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enough_failures_end_it() {
        let now = Instant::now();
        let mut watch = Watch::new(Conditions { failures: Some(2), nothing_new_for: None }, now);
        watch.failure(now);
        assert_eq!(watch.reason(now + Duration::from_secs(10_000)), None);
        watch.failure(now);
        assert!(watch.reason(now).is_some());
    }

    #[test]
    fn nothing_new_for_long_enough_ends_it_and_something_new_begins_anew() {
        let now = Instant::now();
        let minute = Duration::from_secs(60);
        let mut watch = Watch::new(Conditions { failures: None, nothing_new_for: Some(10 * minute) }, now);
        assert_eq!(watch.reason(now + 9 * minute), None);
        watch.failure(now + 9 * minute);
        assert_eq!(watch.reason(now + 18 * minute), None);
        assert!(watch.reason(now + 19 * minute).is_some());
    }
}
