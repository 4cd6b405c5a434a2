//! What earlier runs teach the next: how many threads, how many steps.
//!
//! The paper on PCT takes the steps of the run before as the estimate of the next; the theorem asks for an upper
//! bound. The greatest of the last runs serves both: it is a bound when runs repeat themselves, and it forgets a
//! run that was long by accident. Runs that were cut short or ran into a limit teach nothing.

use crate::run::{Outcome, RunReport};

/// Runs that are remembered.
const WINDOW: usize = 32;

/// Threads and steps of the last runs.
#[derive(Clone, Debug, Default)]
pub struct Learned {
    steps: [u64; WINDOW],
    threads: [u32; WINDOW],
    runs: usize,
}

impl Learned {
    /// Takes one run in, with the steps that count for the strategy.
    pub fn take(&mut self, report: &RunReport<'_>, steps: u64) {
        if report.outcome == Outcome::Cut {
            return;
        }
        let place = self.runs % WINDOW;
        self.steps[place] = steps;
        self.threads[place] = report.lengths.len() as u32;
        self.runs += 1;
    }

    /// How many runs were taken in.
    pub fn runs(&self) -> usize {
        self.runs
    }

    /// The most steps; 0 when nothing is known.
    pub fn steps(&self) -> u64 {
        self.steps.iter().copied().max().unwrap_or(0)
    }

    /// The most threads; 0 when nothing is known.
    pub fn threads(&self) -> u32 {
        self.threads.iter().copied().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_and_cut_runs_are_forgotten() {
        let mut learned = Learned::default();
        let report = |outcome| RunReport { outcome, steps: 0, lengths: &[1, 2], news: false };
        learned.take(&report(Outcome::Cut), 1_000_000);
        assert_eq!((learned.steps(), learned.threads(), learned.runs()), (0, 0, 0));
        learned.take(&report(Outcome::Failed), 500);
        assert_eq!((learned.steps(), learned.threads()), (500, 2));
        for _ in 0..WINDOW {
            learned.take(&report(Outcome::Passed), 20);
        }
        assert_eq!(learned.steps(), 20);
    }
}
