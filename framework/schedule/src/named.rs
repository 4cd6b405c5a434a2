//! Events by name, so that one event of a run can be spoken of in another run.
//!
//! An event is named by its thread, what it does to what, and how often that thread did the same before: it keeps its meaning
//! when other steps come or go.

use serde::{Deserialize, Serialize};

use crate::event::{EventKind, ObjectId, ThreadId};

/// One event of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EventName {
    /// Who does it.
    pub thread: ThreadId,
    /// What is done.
    pub kind: EventKind,
    /// To what.
    pub object: ObjectId,
    /// The how manieth of this kind, on this object, by this thread: 1 is the first.
    pub occurrence: u32,
}

/// Two events in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Order {
    /// What comes first.
    pub first: EventName,
    /// What comes after it.
    pub then: EventName,
}

impl Order {
    /// The other way round.
    pub fn reversed(self) -> Order {
        Order { first: self.then, then: self.first }
    }
}
