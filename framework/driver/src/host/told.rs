//! What a strict host told about its schedules, as plain data: how one ended, sums over all of them, and where a process began
//! that ran them.

use std::collections::BTreeSet;

use waylay_control_protocol::Site;
use waylay_schedule::RunParameters;
use waylay_schedule::coverage::OrdersSeen;
use waylay_schedule::promise::Aimed;

/// What the library found out about a schedule by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoppedBy {
    /// No thread could ever run again.
    Deadlock,
    /// The step limit was reached, although things went on changing.
    StepLimit,
    /// Nothing changed for so long that nothing ever will.
    Livelock,
    /// Two accesses met that nothing orders.
    Race,
    /// The settings could not be carried out.
    Refused,
}

/// Sums over schedules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunTotals {
    pub(crate) runs: u64,
    pub(crate) steps: u64,
    pub(crate) longest: u64,
    pub(crate) threads: u32,
    pub(crate) partly_controlled: u64,
    /// Schedules in which it was looked which plain accesses conflict, and the most accesses of one.
    pub(crate) looked_at: u64,
    pub(crate) accesses: u64,
    /// Places in code whose plain accesses are steps, and the most of them that had too many in one schedule.
    pub(crate) places: u64,
    pub(crate) limited: u64,
    /// Some of those, and whether more memory was touched than is remembered.
    pub(crate) limited_places: BTreeSet<u64>,
    pub(crate) overlooked: bool,
    pub(crate) overlooked_places: BTreeSet<u64>,
    /// Calls were made that were no steps, because there were too many.
    pub(crate) calls_over: bool,
    pub(crate) refused_places: BTreeSet<u64>,
    /// Libraries of the system that were loaded by name, as sites.
    pub(crate) loaded: BTreeSet<u64>,
    /// Instructions of plugins that can be steps, and that cannot.
    pub(crate) patched: u64,
    pub(crate) refused: u64,
    pub(crate) aimed: Aimed,
    /// In which orders conflicting events came, of the process that saw most.
    pub(crate) orders: OrdersSeen,
    /// A process made no further schedule because no new order came.
    pub(crate) quiet: bool,
}

impl RunTotals {
    /// Adds what another host did.
    pub(crate) fn add(&mut self, other: &RunTotals) {
        self.runs += other.runs;
        self.steps += other.steps;
        self.longest = self.longest.max(other.longest);
        self.threads = self.threads.max(other.threads);
        self.partly_controlled += other.partly_controlled;
        self.looked_at += other.looked_at;
        for (most, more) in [
            (&mut self.accesses, other.accesses),
            (&mut self.places, other.places),
            (&mut self.limited, other.limited),
            (&mut self.patched, other.patched),
            (&mut self.refused, other.refused),
        ] {
            *most = (*most).max(more);
        }
        self.limited_places.extend(&other.limited_places);
        self.overlooked |= other.overlooked;
        self.calls_over |= other.calls_over;
        self.overlooked_places.extend(&other.overlooked_places);
        self.refused_places.extend(&other.refused_places);
        self.loaded.extend(&other.loaded);
        self.aimed.add(&other.aimed);
        self.orders.join(&other.orders);
        self.quiet |= other.quiet;
    }
}

/// Which plain accesses of a schedule are steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainSteps {
    /// Those at these places and of these kinds, in the order in which they were learned.
    pub sites: Vec<Site>,
    /// It was looked which others should be: a loop that waits is seen at those too.
    pub looked_at: bool,
    /// Accesses to what is handed over are steps.
    pub handed: bool,
}

/// The beginning of a process that ran schedules: with it, another one can get to where that one was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Past {
    /// Its first schedule.
    pub first: u64,
    /// How often that was run before it counted.
    pub repeats: u64,
    /// What the strategy was given then.
    pub parameters: RunParameters,
    /// How many of the failing schedule's [`PlainSteps::sites`] it began with.
    pub sites: usize,
}
