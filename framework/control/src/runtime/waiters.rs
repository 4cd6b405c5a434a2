//! What the interposed functions tell the scheduler about objects and those who wait for them.

use super::Token;
use crate::sched::{Key, Shares};

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

/// Wakes up to `count` waiting threads; returns how many there were.
pub(crate) fn wake(me: &mut Token, key: Key, count: u32, shares: Shares) -> u32 {
    me.run().sched.wake(key, count, shares)
}

/// Wakes up to `count` waiting threads and lets up to `moved` more wait for `to` instead; returns how many there were.
pub(crate) fn wake_or_move(me: &mut Token, key: Key, count: u32, to: Key, moved: u32) -> u32 {
    let woken = wake(me, key, count, Shares::ALL);
    woken + me.run().sched.requeue(key, to, moved)
}
