//! What became of a thread that was to be suspended.

use std::time::{Duration, Instant};

use crate::identity::ThreadId;
use crate::refusal::Tracer;

/// One thread in one window.
#[derive(Debug, Clone)]
pub(crate) struct Suspension {
    pub(crate) thread: ThreadId,
    /// The decision: when the first thread of its window was asked to stop.
    pub(crate) asked: Instant,
    /// When it was seen to stand still; it stopped running a little before.
    pub(crate) stopped: Option<Instant>,
    /// When it was let go, or found out of reach.
    pub(crate) over: Instant,
    pub(crate) fate: Fate,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It runs on.
    Resumed,
    /// It ended after it was asked.
    Gone,
    /// It had ended before.
    NotThere,
    /// It could not be asked; traced by somebody else, if it says by whom.
    Refused(Option<Tracer>),
    /// It did not stop in time.
    Unstoppable,
}

/// A thread did not stop, and the thread that opens windows must end to let it go.
#[derive(Debug)]
pub(crate) struct GiveUp;

impl Suspension {
    /// How long the thread stood still, if it did.
    pub(crate) fn held(&self) -> Option<Duration> {
        Some(self.over.saturating_duration_since(self.stopped?))
    }
}
