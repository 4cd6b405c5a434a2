//! Events by name, so that one event of a run can be spoken of in another run.
//!
//! An event is named by its thread, what it does to what, and how often that thread did the same before: it keeps its meaning
//! when other steps come or go. Where its place in the code is part of the name, only what is done there counts, and looks that
//! a thread repeats, with nothing but yields and sleeps between them, are one event: how often a thread looks while it waits in
//! a loop is a matter of chance. Such an event comes after another when its first look does, and before another when its last
//! look does, after which the thread does something else.

use serde::{Deserialize, Serialize};

use crate::event::{Event, EventKind, ObjectId, ThreadId};

/// One event of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EventName {
    /// Who does it.
    pub thread: ThreadId,
    /// What is done.
    pub kind: EventKind,
    /// To what.
    pub object: ObjectId,
    /// The how manieth of this kind, on this object, by this thread, and at this place if one is named: 1 is the first.
    pub occurrence: u32,
    /// Where in the code, as [`Event::place`] says it; 0: wherever it is.
    #[serde(default, skip_serializing_if = "is_anywhere")]
    pub place: u16,
}

fn is_anywhere(place: &u16) -> bool {
    *place == 0
}

impl EventName {
    /// Whether a thread that is about to do this is about to do one of the events that are counted together.
    #[inline]
    pub fn counts(&self, thread: ThreadId, event: &Event) -> bool {
        let at_place = self.place == 0 || self.place == event.place;
        self.thread == thread && self.kind == event.kind && self.object == event.object && at_place
    }

    /// Whether looks that are repeated are one event under this name.
    #[inline]
    pub fn is_folded(&self) -> bool {
        self.place != 0 && is_look(self.kind)
    }
}

/// Whether an event only looks.
#[inline]
fn is_look(kind: EventKind) -> bool {
    matches!(kind, EventKind::AtomicLoad | EventKind::PlainRead)
}

/// What a thread looked at last, if it has done nothing else since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastLook(Option<(EventKind, ObjectId, u16)>);

impl LastLook {
    /// Whether it is about to look at the same once more.
    #[inline]
    pub fn is_repeated(&self, event: &Event) -> bool {
        self.0 == Some((event.kind, event.object, event.place))
    }

    /// It does this.
    #[inline]
    pub fn does(&mut self, event: &Event) {
        if is_look(event.kind) {
            self.0 = Some((event.kind, event.object, event.place));
        } else if !event.kind.is_idle() {
            self.0 = None;
        }
    }

    /// Whether a thread that looked is done with that when it is about to do this.
    #[inline]
    pub fn is_over(&self, next: &Event) -> bool {
        !next.kind.is_idle() && !self.is_repeated(next)
    }
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
