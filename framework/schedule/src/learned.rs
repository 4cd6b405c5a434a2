//! What earlier runs teach the next: how many threads, how many steps.
//!
//! The paper on PCT takes the steps of the run before as the estimate of the next; the theorem asks for an upper bound. So
//! for runs that are to keep the promise for every bug the estimate is above all runs so far: a run whose k is smaller than
//! the true length says nothing about bugs near its end. It grows in coarse steps, with some room, because each growth
//! makes the runs before it worthless; where runs are of different lengths there is more room, because a longer one will come.
//! A run that failed makes nothing longer: what it did after it failed, such as unwinding, is no place where another bug was
//! to be found, and what it did before others did as well that passed. Only where nothing else is known it is taken for the
//! length of all. Runs in phases promise less and may follow the program more closely: for them it is
//! the longest phase of the last runs, which forgets one that was long by accident. Runs that were cut short or ran into a
//! limit teach nothing.
//!
//! Where the main thread leaves while others are in the middle of something, they could have gone on in another schedule, and
//! so could the main thread behind its exit while they are there: no run may show both. So what such threads lack of what they
//! take when they come to their end is added.

use crate::event::ThreadId;
use crate::run::{Outcome, RunReport};

/// Runs in phases that are remembered.
const WINDOW: usize = 32;

/// How long a run was.
#[derive(Clone, Copy, Debug, Default)]
pub struct Length {
    /// The steps that may count in another schedule.
    pub whole: u64,
    /// Those of the longest phase; none when the run was not made in phases.
    pub phase: Option<u64>,
    /// Threads, and timers of threads.
    pub threads: u32,
}

/// Threads and steps of the runs so far.
#[derive(Clone, Debug, Default)]
pub struct Learned {
    phases: [u64; WINDOW],
    in_phases: usize,
    longest: u64,
    reach: u64,
    threads: u32,
    runs: usize,
    /// Runs that passed, and their steps: what is usual.
    passed: u64,
    passed_steps: u64,
    /// The most steps of each thread in a run in which it came to its end.
    finished: Vec<u64>,
}

/// The next number of a coarse scale that leaves room: 4, 5, 6, 7, 8, 10, 12, 14, 16, 20 and so on. An eighth where runs are as
/// long as each other. Where the longest is more than a sixteenth above the usual, a quarter, and half of what it is above if
/// that is more: where lengths fall off geometrically, as those of loops that wait do, one that long comes once in some eight
/// times as many runs as there were.
fn with_room(steps: u64, usual: u64) -> u64 {
    let above = steps.saturating_sub(usual);
    let room = if above > steps / 16 { (steps / 4).max(above / 2) } else { steps.div_ceil(8) };
    let least = steps.saturating_add(room).max(4);
    let unit = (1_u64 << least.ilog2()) / 4;
    least.div_ceil(unit).saturating_mul(unit)
}

impl Learned {
    /// Takes one run in.
    pub fn take(&mut self, report: &RunReport<'_>, length: Length) {
        if report.outcome == Outcome::Cut {
            return;
        }
        if let Some(phase) = length.phase {
            self.phases[self.in_phases % WINDOW] = phase;
            self.in_phases += 1;
        }
        if report.outcome == Outcome::Passed {
            self.passed += 1;
            self.passed_steps = self.passed_steps.saturating_add(length.whole);
            self.lengthen(length.whole);
        } else if self.reach == 0 {
            self.lengthen(length.whole);
        }
        self.threads = self.threads.max(length.threads);
        self.runs += 1;
    }

    /// In a run in which no thread seemed to spin, these came to their end with so many steps.
    pub fn finish(&mut self, lengths: &[u64], finished: impl Iterator<Item = ThreadId>) {
        for thread in finished.map(ThreadId::index) {
            if self.finished.len() <= thread {
                self.finished.resize(thread + 1, 0);
            }
            self.finished[thread] = self.finished[thread].max(lengths[thread]);
        }
    }

    /// How many steps these threads, which did not come to their end, lack of what they take to it.
    pub fn missing(&self, lengths: &[u64], cut_off: impl Iterator<Item = ThreadId>) -> u64 {
        let missing = |thread: usize| {
            self.finished.get(thread).map_or(0, |longest| longest.saturating_sub(lengths[thread]))
        };
        cut_off.map(ThreadId::index).map(missing).sum()
    }

    /// A run that did not fail had so many steps that may count in another schedule.
    pub fn lengthen(&mut self, steps: u64) {
        self.longest = self.longest.max(steps);
        if self.longest > self.reach {
            let usual = self.passed_steps.checked_div(self.passed).unwrap_or(self.longest);
            self.reach = with_room(self.longest, usual);
        }
    }

    /// How many runs were taken in.
    pub fn runs(&self) -> usize {
        self.runs
    }

    /// The most steps of a phase; 0 when nothing is known.
    pub fn phase(&self) -> u64 {
        self.phases.iter().copied().max().unwrap_or(0)
    }

    /// The most steps of a run.
    pub fn longest(&self) -> u64 {
        self.longest
    }

    /// More than the steps of any run so far; 0 when nothing is known.
    pub fn reach(&self) -> u64 {
        self.reach
    }

    /// The most threads; 0 when nothing is known.
    pub fn threads(&self) -> u32 {
        self.threads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_lack_that_were_cut_off_is_known_from_others() {
        let mut learned = Learned::default();
        let thread = |number: &u32| ThreadId(*number);
        assert_eq!(learned.missing(&[5, 1], [1].iter().map(thread)), 0, "nothing is known of it");
        learned.finish(&[9, 4, 7], [1, 2].iter().map(thread));
        learned.finish(&[9, 3, 8], [1, 2].iter().map(thread));
        assert_eq!(learned.missing(&[5, 1, 2], [1, 2].iter().map(thread)), 3 + 6);
        assert_eq!(learned.missing(&[5, 6], [1].iter().map(thread)), 0, "it did more than ever");
        assert_eq!(learned.missing(&[5], [0].iter().map(thread)), 0, "it never came to its end");
    }

    #[test]
    fn phases_are_forgotten_and_lengths_are_not() {
        let mut learned = Learned::default();
        let report = |outcome| RunReport { outcome, steps: 0, lengths: &[1, 2], news: false };
        let length = |whole, phase, threads| Length { whole, phase, threads };
        learned.take(&report(Outcome::Cut), length(1_000_000, Some(1_000_000), 9));
        assert_eq!((learned.phase(), learned.reach(), learned.threads(), learned.runs()), (0, 0, 0, 0));
        learned.take(&report(Outcome::Failed), length(900, Some(500), 2));
        assert_eq!((learned.phase(), learned.longest(), learned.threads()), (500, 900, 2));
        let reach = learned.reach();
        assert!((1000..=1280).contains(&reach), "{reach}");
        for _ in 0..WINDOW {
            learned.take(&report(Outcome::Passed), length(reach, Some(20), 2));
        }
        assert_eq!((learned.phase(), learned.reach()), (20, reach), "as long as it was planned for");
        learned.take(&report(Outcome::Passed), length(reach + 1, None, 3));
        assert_eq!((learned.phase(), learned.threads()), (20, 3));
        assert!(learned.reach() > reach + reach / 8);
    }

    /// A panic unwinds for long, late: nothing that was planned before becomes worthless.
    #[test]
    fn a_run_that_failed_makes_nothing_longer() {
        let mut learned = Learned::default();
        let report = |outcome| RunReport { outcome, steps: 0, lengths: &[1, 2], news: false };
        let length = |whole| Length { whole, phase: None, threads: 2 };
        learned.take(&report(Outcome::Failed), length(300));
        assert_eq!(learned.longest(), 300, "better than nothing");
        let mut learned = Learned::default();
        learned.take(&report(Outcome::Passed), length(100));
        let reach = learned.reach();
        learned.take(&report(Outcome::Failed), length(1000));
        assert_eq!((learned.reach(), learned.longest(), learned.runs()), (reach, 100, 2));
        learned.take(&report(Outcome::Passed), length(1000));
        assert!(learned.reach() >= 1125);
    }

    #[test]
    fn runs_of_different_lengths_leave_more_room() {
        let mut learned = Learned::default();
        let report = RunReport { outcome: Outcome::Passed, steps: 0, lengths: &[1, 2], news: false };
        for whole in [100, 100, 100, 100, 100, 100, 100, 800] {
            learned.take(&report, Length { whole, phase: None, threads: 2 });
        }
        // 187 are usual: 800 and half of what that is above.
        assert_eq!(learned.reach(), 1280);
        learned.lengthen(1280);
        assert_eq!(learned.reach(), 1280, "as long as it was planned for");
    }

    #[test]
    fn the_scale_is_coarse_and_leaves_room() {
        let mut scale: Vec<u64> = (1..200).map(|steps| with_room(steps, steps)).collect();
        scale.dedup();
        assert_eq!(scale[..11], [4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24]);
        for steps in (1..100_000).step_by(7) {
            let room = with_room(steps, steps) as f64 / steps as f64;
            assert!(steps < 4 || (1.125..1.45).contains(&room), "{steps}: {room}");
        }
        assert_eq!(with_room(u64::MAX, u64::MAX), u64::MAX);
    }
}
