//! One host at work: its process, what runs in it, and what the driver knows of it.

use std::cell::Cell;
use std::time::{Duration, Instant};

use waylay_evidence::Standstill;
use waylay_page::Layout;

use super::assignment::Assignment;
use super::hang::Suspect;
use super::leaks::LeakWatch;
use super::patience::Patience;
use crate::host::{ControlRegion, HostProcess};
use crate::randomizer::RandomizerProcess;

/// A host that stood still for longer, for evidence, is late because of us. Stacks and dump take some ten milliseconds.
const LONG_STANDSTILL: Duration = Duration::from_millis(100);

/// One host at work.
pub(crate) struct Session {
    /// Before the host, so that it is dropped first: the end of a process waits for its tracer.
    pub(crate) randomizer: Option<RandomizerProcess>,
    pub(crate) host: HostProcess,
    pub(crate) assignment: Assignment,
    pub(super) suspects: Vec<Suspect>,
    pub(super) leaks: Option<LeakWatch>,
    pub(super) cancelled_at: Option<Instant>,
    /// The plugin that is being loaded, and since when.
    pub(super) loading: (u32, Instant),
    /// What the control library shares, in strict mode.
    pub(crate) region: Option<ControlRegion>,
    pub(crate) started: Instant,
    /// Since when every test is over and only the host itself is not.
    pub(super) tests_over: Option<Instant>,
    /// When a randomizer that did not let go of threads was killed, or a long standstill ended: what was late until then may
    /// be so because of it.
    pub(super) released: Cell<Option<Instant>>,
    /// Limits by our own clock, whatever the host shows.
    pub(super) patience: Patience,
    /// The host said that threads outlived a schedule: its last.
    pub(super) left_behind: bool,
    /// What the host shows is not to be believed any more.
    pub(super) corrupted: bool,
}

impl Session {
    /// What is known of the host: what it shows, or what it showed before that became impossible.
    pub(super) fn shown(&self) -> &Layout {
        if self.corrupted { self.host.believed() } else { self.host.layout() }
    }

    /// Lets the host go on when the evidence is on disk.
    pub(super) fn goes_on_after(&self, still: Option<Standstill>) {
        if still.is_some_and(|still| still.lasts() > LONG_STANDSTILL) {
            self.released.set(Some(Instant::now()));
        }
    }
}
