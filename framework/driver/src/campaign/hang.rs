//! Late, but for how long? A suspect is something late that may still come back; until then its evidence waits.
//!
//! A thread that sleeps with a timeout or uses the processor may only be slow. It is given a grace period: if it comes
//! back it was slow, if not it is what the evidence said.

use std::sync::atomic::Ordering;
use std::time::Instant;

use waylay_page::{HostPhase, Layout, TestPhase, WorkerState};

use super::draft::Draft;
use crate::host::Overdue;

/// Something late that may come back.
pub(crate) struct Suspect {
    draft: Draft,
    late: Vec<Overdue>,
    until: Instant,
}

/// What became of a suspect.
pub(crate) enum Outcome {
    /// It came back: slow.
    CameBack(Suspect),
    /// Its grace is over.
    Stuck(Suspect),
}

/// The host's test that something late belongs to.
pub(crate) fn test_of(late: &Overdue) -> usize {
    match late {
        Overdue::Iteration { test, .. } | Overdue::Phase { test, .. } | Overdue::Loading { test, .. } => {
            *test
        }
    }
}

impl Suspect {
    pub(crate) fn new(draft: Draft, late: Vec<Overdue>, until: Instant) -> Suspect {
        Suspect { draft, late, until }
    }

    /// Whether this is already being watched.
    pub(crate) fn covers(&self, other: &Overdue) -> bool {
        self.late.iter().any(|late| match (late, other) {
            (
                Overdue::Iteration { worker: a, iteration: i, .. },
                Overdue::Iteration { worker: b, iteration: j, .. },
            ) => a == b && i == j,
            (Overdue::Phase { test: a, phase: p, .. }, Overdue::Phase { test: b, phase: q, .. }) => {
                a == b && p == q
            }
            (Overdue::Loading { plugin: a, .. }, Overdue::Loading { plugin: b, .. }) => a == b,
            _ => false,
        })
    }

    /// What is recorded about it when its host is gone before it could come back.
    pub(crate) fn into_undecided(mut self) -> Draft {
        let reason = self.draft.finding.reason.take().unwrap_or_default();
        self.draft.finding.reason = Some(format!("{reason}; the host was lost before it could come back"));
        self.draft
    }

    /// What is recorded about it in the end.
    pub(crate) fn into_draft(self, came_back: bool) -> Draft {
        if came_back { self.draft.into_slow() } else { self.draft }
    }
}

/// Takes the suspects out that came back or whose grace is over.
pub(crate) fn settle(suspects: &mut Vec<Suspect>, layout: &Layout, now: Instant) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for index in (0..suspects.len()).rev() {
        if suspects[index].late.iter().all(|late| came_back(late, layout)) {
            outcomes.push(Outcome::CameBack(suspects.remove(index)));
        } else if now >= suspects[index].until {
            outcomes.push(Outcome::Stuck(suspects.remove(index)));
        }
    }
    outcomes.reverse();
    outcomes
}

pub(crate) fn came_back(late: &Overdue, layout: &Layout) -> bool {
    match late {
        Overdue::Iteration { worker, test, iteration, .. } => {
            let slot = &layout.workers[*worker];
            slot.running() != (*test as u32, *iteration)
                || matches!(WorkerState::load(&slot.state), WorkerState::Done | WorkerState::Finished)
        }
        Overdue::Phase { test, phase, .. } => TestPhase::load(&layout.tests[*test].phase) != *phase,
        Overdue::Loading { plugin, .. } => {
            HostPhase::load(&layout.header.phase) > HostPhase::Loading
                || layout.header.loading.load(Ordering::Acquire) != *plugin
        }
    }
}
