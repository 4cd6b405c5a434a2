//! What the interposed functions tell the scheduler about objects and those who wait for them.

use waylay_runtime::point;
use waylay_schedule::{Event, EventKind, ObjectId};
use waylay_scheduler::{Key, Shares};

use super::Token;

/// What `key` names was taken: those who want one of `shares` have to wait now.
#[inline]
pub(crate) fn taken(me: &mut Token, key: Key, shares: Shares) {
    me.run().sched.taken(key, shares)
}

/// What `key` names is free for those who want one of `shares`.
#[inline]
pub(crate) fn freed(me: &mut Token, key: Key, shares: Shares) {
    me.run().sched.freed(key, shares)
}

/// Wakes up to `count` waiting threads.
pub(crate) fn wake(me: &mut Token, key: Key, count: u32) {
    me.run().sched.wake(key, count, Shares::ALL);
}

/// Runs `work`, which may block in the kernel, while others go on.
pub(crate) fn away<R>(me: &mut Token, work: impl FnOnce() -> R) -> R {
    point::away(me, Event::new(EventKind::BlockingReturn, ObjectId::UNKNOWN), work)
}
