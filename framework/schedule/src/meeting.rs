//! Which events meet: two threads, one thing, and an order that the program leaves open.

use crate::event::{Event, EventKind, ObjectId};

/// Whether an event has happened when it is announced: who wakes others does so first and then asks who runs. Such an
/// event happens together with the step before of its thread.
pub fn acts_before(kind: EventKind) -> bool {
    use EventKind::*;
    matches!(kind, CondSignal | CondBroadcast | SemPost | FutexWake)
}

/// Whether the order of such an event among others is free to be chosen. What threads do to each other as threads is
/// settled by the program, and a lock is given back where it is given back.
pub fn is_free(kind: EventKind) -> bool {
    use EventKind::*;
    !matches!(
        kind,
        ThreadStart
            | ThreadSpawn
            | ThreadJoin
            | ThreadExit
            | ProcessExit
            | MutexUnlock
            | RwReadUnlock
            | RwWriteUnlock
            | BlockingReturn
    )
}

/// Whether two events touch the same thing in a way that their order can matter.
pub fn meet(one: &Event, other: &Event) -> bool {
    let bare = |event: &Event| Event { also: ObjectId::NONE, ..*event };
    one.object != ObjectId::UNKNOWN && other.object != ObjectId::UNKNOWN && bare(one).conflicts(&bare(other))
}
