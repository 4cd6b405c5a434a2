//! What the interposed functions tell the scheduler about objects and those who wait for them.

use super::{Token, Waited, wait};
use crate::sched::{Key, Moment, Shares};
use waylay_schedule::Event;

/// A thread that waits for several words at once, whichever is woken first.
#[derive(Debug)]
pub(crate) struct Several {
    /// Its record.
    thread: usize,
    words: Vec<Key>,
    /// The one that was woken.
    woken: Option<usize>,
}

/// Where such a thread stands in line: an address inside its own record that names nothing else.
fn key_of(thread: usize) -> Key {
    Key(thread + 3)
}

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

/// Wakes up to `count` waiting threads, those that wait for nothing else first; returns how many there were.
pub(crate) fn wake(me: &mut Token, key: Key, count: u32, shares: Shares) -> u32 {
    let mut woken = me.run().sched.wake(key, count, shares);
    let run = me.run();
    for waiter in run.system.several.iter_mut().filter(|waiter| waiter.woken.is_none()) {
        if woken == count {
            break;
        }
        waiter.woken = waiter.words.iter().position(|&word| word == key);
        if waiter.woken.is_some() {
            woken += run.sched.wake(key_of(waiter.thread), 1, Shares::ALL);
        }
    }
    woken
}

/// Wakes up to `count` waiting threads and lets up to `moved` more wait for `to` instead; returns how many there were.
pub(crate) fn wake_or_move(me: &mut Token, key: Key, count: u32, to: Key, moved: u32) -> u32 {
    let woken = wake(me, key, count, Shares::ALL);
    woken + me.run().sched.requeue(key, to, moved)
}

/// Waits until one of several words is woken: which, or how the wait ended otherwise.
pub(crate) fn wait_for_one_of(
    me: &mut Token,
    event: Event,
    words: Vec<Key>,
    deadline: Option<Moment>,
) -> Result<usize, Waited> {
    let thread = me.thread() as usize;
    me.run().system.several.push(Several { thread, words, woken: None });
    let waited = wait(me, event, key_of(thread), Shares::ALL, deadline, None);
    let several = &mut me.run().system.several;
    let place = several.iter().position(|waiter| waiter.thread == thread);
    // Woken and interrupted at once is woken: whoever woke it counted on it.
    let woken = place.and_then(|place| several.swap_remove(place).woken);
    woken.ok_or(waited)
}
