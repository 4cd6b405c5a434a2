//! One logical thread, as the scheduler sees it.

use waylay_schedule::{Event, ThreadId};

use super::clock::Moment;

/// What a thread can wait for: an address, or anything else that names one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key(pub usize);

/// In which way a thread wants an object: a set of bits of which an operation on the object names some.
///
/// A mutex has one way; a reader-writer lock has two, because a new reader stops writers and not readers; a futex
/// word has 32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares(pub u32);

impl Shares {
    /// Every way there is.
    pub const ALL: Shares = Shares(u32::MAX);

    /// Whether one of these ways is among the others.
    pub fn meets(self, other: Shares) -> bool {
        self.0 & other.0 != 0
    }
}

/// What a thread does once its wait is over, when that again may have to wait: the mutex of a condition variable.
#[derive(Clone, Copy, Debug)]
pub struct Acquire {
    /// The operation.
    pub event: Event,
    /// The object, whose own address `is_free` gets.
    pub key: Key,
    /// Whether the object could be had right now.
    pub is_free: fn(Key) -> bool,
}

/// Whether a thread can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It announced its next operation and can do it.
    Ready,
    /// It waits for a key.
    Blocked,
    /// It is inside a call that the kernel may block; it will arrive again by itself.
    Away,
    /// It is gone.
    Finished,
}

/// Why a waiting thread runs again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Somebody woke it, or it never had to wait.
    Woken,
    /// Its deadline came first.
    TimedOut,
    /// The wait was broken off: somebody asked the thread to end, or a signal handler ran.
    Interrupted,
}

/// Everything the scheduler knows about one thread.
#[derive(Debug)]
pub struct Thread {
    /// Whether it can be chosen.
    pub state: State,
    /// What it will do when chosen.
    pub pending: Event,
    /// The key it stands in line for, whether ready (announced) or blocked.
    pub interest: Option<Key>,
    /// In which way it wants that.
    pub shares: Shares,
    /// When its wait ends by itself.
    pub deadline: Option<Moment>,
    /// The step at which that wait began.
    pub blocked_at: u64,
    /// What it does when it is woken, if that may have to wait again.
    pub then: Option<Acquire>,
    /// Why its last wait ended.
    pub outcome: Outcome,
    /// Its next wait is over before it begins.
    pub(super) called_off: bool,
    /// Its wait is over, and it stands in line for what comes [`then`](Thread::then).
    pub(super) continues: bool,
    /// How many signal handlers it is in, one inside the other.
    pub(super) handlers: u32,
    /// It is away, or on its way, in a call that only a signal ends.
    pub(super) patient: bool,
    /// Choices that fell on it.
    pub steps: u64,
    /// The processor time that it saw itself use, in nanoseconds.
    pub busy: u64,
    /// Neighbours in the line of `interest`.
    pub(super) next: Option<ThreadId>,
    pub(super) previous: Option<ThreadId>,
}

impl Thread {
    pub(super) fn new(first: Event) -> Self {
        Self {
            state: State::Ready,
            pending: first,
            interest: None,
            shares: Shares::ALL,
            deadline: None,
            blocked_at: 0,
            then: None,
            outcome: Outcome::Woken,
            called_off: false,
            continues: false,
            handlers: 0,
            patient: false,
            steps: 0,
            busy: 0,
            next: None,
            previous: None,
        }
    }
}
