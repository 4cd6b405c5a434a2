//! Counters of one test: read from the shared page, added up over hosts.

use std::sync::atomic::Ordering;

use waylay_page::Layout;

/// Counters of one test over all hosts of the scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Totals {
    pub(crate) iterations: u64,
    pub(crate) busy_ticks: u64,
    /// Of a contained test: the sum of the squares of its iterations' ticks.
    pub(crate) squares: f64,
    /// Of a contained test: the share of the time that it is meant to get.
    pub(crate) asked: f64,
    pub(crate) shortest: Option<u64>,
    pub(crate) longest: u64,
}

impl Totals {
    pub(crate) fn add(&mut self, other: Totals) {
        self.iterations = self.iterations.saturating_add(other.iterations);
        self.busy_ticks = self.busy_ticks.saturating_add(other.busy_ticks);
        self.squares += other.squares;
        self.asked = if other.iterations > 0 || self.iterations == 0 { other.asked } else { self.asked };
        self.shortest = self.shortest.into_iter().chain(other.shortest).min();
        self.longest = self.longest.max(other.longest);
    }

    /// What a contained test counted in the running host.
    pub(crate) fn of_contained(layout: &Layout, test: usize) -> Totals {
        let words = &layout.tests[test];
        let iterations = words.runs.load(Ordering::Relaxed);
        Totals {
            iterations,
            busy_ticks: words.busy.load(Ordering::Relaxed),
            squares: f64::from_bits(words.squares.load(Ordering::Relaxed)),
            asked: f64::from_bits(words.asked.load(Ordering::Relaxed)),
            shortest: (iterations > 0).then(|| !words.shortest_inverted.load(Ordering::Relaxed)),
            longest: words.longest.load(Ordering::Relaxed),
        }
    }

    /// What a worker counted in the running host.
    pub(crate) fn of_worker(layout: &Layout, slot: usize) -> Totals {
        let words = &layout.workers[slot];
        let iterations = words.finished.load(Ordering::Relaxed);
        Totals {
            iterations,
            busy_ticks: words.busy.load(Ordering::Relaxed),
            squares: 0.0,
            asked: 0.0,
            shortest: (iterations > 0).then(|| words.shortest.load(Ordering::Relaxed)),
            longest: words.longest.load(Ordering::Relaxed),
        }
    }
}
