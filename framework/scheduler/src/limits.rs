//! When a run has gone on for long enough. Pure.
//!
//! A run ends after so many steps, or after a part of them in which nothing changed. While the main thread of a run in a
//! host waits for the others to end, a nearer limit holds: behind it they are left behind, and the run goes on.

use waylay_control_protocol::in_process::LEFT_STEPS;

/// The limits of a run, and when it changed something last.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    most: u64,
    /// The one that holds at the moment: of the run, or of those who are left.
    now: u64,
    /// How many steps may follow each other in which nothing changes.
    most_quiet: u64,
    /// The step behind which something changed last, as far as that is seen.
    changed: u64,
    closing: bool,
    /// Steps of this run that do not count.
    excused: u64,
    /// How many quiet steps may follow each other before somebody is asked whether time should pass, and the step at which
    /// that is due.
    patience: u64,
    restless: u64,
    /// The step at which it is due whatever changes.
    due: u64,
}

/// Why time should pass although threads can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// They only look.
    Quiet,
    /// They work, and may do so until somebody who sleeps tells them to stop.
    Work,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            most: u64::MAX,
            now: u64::MAX,
            most_quiet: u64::MAX,
            changed: 0,
            closing: false,
            excused: 0,
            patience: u64::MAX,
            restless: u64::MAX,
            due: u64::MAX,
        }
    }
}

impl Limits {
    /// Ends a run after so many steps; 0 is without an end.
    pub fn of(max_steps: u64) -> Limits {
        let most = if max_steps == 0 { u64::MAX } else { max_steps };
        Limits { most, now: most, ..Limits::default() }
    }

    /// Ends it earlier, too, when nothing changes any more: [`progressed`](Limits::progressed) says what does.
    pub fn or_when_quiet(self) -> Limits {
        /// Far more steps than loops look that give up some time.
        const LEAST: u64 = 100_000;
        const PART: u64 = 10;
        Limits { most_quiet: (self.most / PART).max(LEAST), ..self }
    }

    /// Asks whether time should pass when nothing has changed for a while, long before that is a livelock: where sleeps end
    /// only when nothing else can run, a thread that looks at a flag again and again would keep the one asleep that is to set it.
    pub fn asking_for_time(self) -> Limits {
        /// More than loops look that sleep or give up soon (Rust's locks: 100), and little beside what a livelock takes. Time
        /// passes at the second question at the earliest ([`Looking`](crate::Looking)).
        const PATIENCE: u64 = 1_000;
        Limits { patience: PATIENCE, restless: PATIENCE, due: Self::DUE, ..self }
    }

    /// Steps between two times at which time is asked for while threads work.
    const DUE: u64 = 5_000;

    /// A run begins.
    pub fn begin(&mut self) {
        self.changed = 0;
        (self.restless, self.due) =
            (self.patience, if self.patience == u64::MAX { u64::MAX } else { Self::DUE });
        let excused = std::mem::take(&mut self.excused);
        for limit in [&mut self.most, &mut self.now] {
            *limit = limit.saturating_sub(if *limit == u64::MAX { 0 } else { excused });
        }
    }

    /// The last so many steps count for nothing: threads only slept while the outside world was awaited.
    pub fn excuse(&mut self, steps: u64) {
        self.excused += steps;
        for moment in [&mut self.most, &mut self.now, &mut self.changed, &mut self.restless, &mut self.due] {
            *moment = moment.saturating_add(steps);
        }
    }

    /// Something changed behind this step.
    #[inline]
    pub fn progressed(&mut self, steps: u64) {
        self.changed = steps;
        self.restless = steps.saturating_add(self.patience).min(self.due);
    }

    /// The step behind which something changed last.
    pub fn last_change(&self) -> u64 {
        self.changed
    }

    /// Why time should pass at this step, if it should and nothing worse is reached; the next time is a while later.
    pub fn asks_for_time(&mut self, steps: u64) -> Option<Asks> {
        let worse = steps >= self.now || steps.saturating_sub(self.changed) >= self.most_quiet;
        if worse || steps < self.restless {
            return None;
        }
        let asks = if steps >= self.due { Asks::Work } else { Asks::Quiet };
        if asks == Asks::Work {
            self.due = steps.saturating_add(Self::DUE);
        }
        self.restless = steps.saturating_add(self.patience).min(self.due);
        Some(asks)
    }

    /// Whether one of them is reached.
    #[inline]
    pub fn are_reached(&self, steps: u64) -> bool {
        steps >= self.now || steps.saturating_sub(self.changed) >= self.most_quiet || steps >= self.restless
    }

    /// Whether nothing but quiet is what reached one.
    pub fn only_quiet(&self, steps: u64) -> bool {
        steps < self.now
    }

    /// How many steps in a row changed nothing, if they are too many and some did before.
    pub fn quiet(&self, steps: u64) -> Option<u64> {
        let quiet = steps.saturating_sub(self.changed);
        (quiet < steps && quiet >= self.most_quiet).then_some(quiet)
    }

    /// From now on the main thread waits for the others.
    pub fn close(&mut self, steps: u64) {
        self.now = self.most.min(steps.saturating_add(LEFT_STEPS));
        self.closing = true;
    }

    /// The wait is over.
    pub fn closed(&mut self) {
        self.now = self.most;
        self.closing = false;
    }

    /// Whether the main thread waits for the others.
    pub fn is_closing(&self) -> bool {
        self.closing
    }

    /// Whether the limit that is reached is that of those who are left.
    pub fn of_those_left(&self, steps: u64) -> bool {
        self.closing && steps < self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_at_its_limit_and_none_is_no_limit() {
        let limits = Limits::of(10);
        assert!(!limits.are_reached(9) && limits.are_reached(10));
        assert_eq!(limits.quiet(10), None);
        assert!(!Limits::of(0).or_when_quiet().are_reached(1 << 60));
    }

    #[test]
    fn a_run_in_which_nothing_changes_ends_earlier() {
        let mut limits = Limits::of(5_000_000).or_when_quiet();
        limits.progressed(1_000);
        assert!(!limits.are_reached(500_999) && limits.are_reached(501_000));
        assert!(limits.only_quiet(501_000));
        assert_eq!((limits.quiet(500_999), limits.quiet(501_000)), (None, Some(500_000)));
        limits.progressed(501_000);
        assert!(!limits.are_reached(501_001));
        limits.begin();
        assert!(limits.are_reached(500_000), "what the last run did is forgotten");
        assert_eq!(
            limits.quiet(500_000),
            None,
            "nothing but quiet from the first step on is a limit of steps"
        );
    }

    #[test]
    fn steps_that_are_excused_count_for_no_limit() {
        let mut limits = Limits::of(1_000_000).or_when_quiet();
        limits.progressed(10);
        limits.excuse(5_000_000);
        assert!(!limits.are_reached(5_000_000 + 100_009) && limits.are_reached(5_000_000 + 100_010));
        limits.progressed(5_999_999);
        assert!(!limits.are_reached(5_999_999) && limits.are_reached(6_000_000));
        limits.begin();
        limits.progressed(999_999);
        assert!(!limits.are_reached(999_999) && limits.are_reached(1_000_000), "of the last run only");
        let mut none = Limits::of(0);
        none.excuse(5);
        none.begin();
        assert!(!none.are_reached(u64::MAX - 1));
    }

    #[test]
    fn time_is_asked_for_long_before_a_livelock_and_again_after_a_while() {
        let mut limits = Limits::of(5_000_000).or_when_quiet().asking_for_time();
        limits.progressed(100);
        assert!(!limits.are_reached(1_099) && limits.are_reached(1_100));
        assert_eq!(limits.asks_for_time(1_100), Some(Asks::Quiet));
        assert_eq!(limits.asks_for_time(1_100), None);
        assert!(!limits.are_reached(2_099) && limits.are_reached(2_100));
        assert_eq!(limits.asks_for_time(500_100), None, "that is a livelock");
        limits.begin();
        assert_eq!(limits.asks_for_time(1_000), Some(Asks::Quiet));
        assert_eq!(
            Limits::of(5_000_000).or_when_quiet().asks_for_time(90_000),
            None,
            "unless nobody wants it"
        );
    }

    #[test]
    fn time_is_asked_for_however_much_changes() {
        let mut limits = Limits::of(5_000_000).or_when_quiet().asking_for_time();
        (0..=4_999).for_each(|step| limits.progressed(step));
        assert!(!limits.are_reached(4_999) && limits.are_reached(5_000));
        assert_eq!(limits.asks_for_time(5_000), Some(Asks::Work));
        (5_000..=9_999).for_each(|step| limits.progressed(step));
        assert!(!limits.are_reached(9_999) && limits.are_reached(10_000));
    }

    #[test]
    fn those_who_are_left_have_a_limit_of_their_own() {
        let mut limits = Limits::of(50_000);
        limits.close(100);
        assert!(!limits.are_reached(100 + LEFT_STEPS - 1) && limits.are_reached(100 + LEFT_STEPS));
        assert!(limits.is_closing() && limits.of_those_left(100 + LEFT_STEPS));
        limits.closed();
        assert!(!limits.are_reached(49_999) && !limits.is_closing());
        limits.close(49_000);
        assert!(limits.are_reached(50_000) && !limits.of_those_left(50_000), "the limit of the run stays");
    }
}
