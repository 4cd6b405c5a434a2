//! What a thread is about to do, and whether two such things can be told apart by their order.
//!
//! An [`Event`] is one scheduling point: the operation a thread will carry out when it is next allowed to run.
//! The controller describes it; strategies only compare. Conflict is a pure function of two events, and it is
//! conservative: two events that [`conflict`](Event::conflicts) may commute, two that do not conflict always do.
//!
//! Objects live in three spaces that never overlap: addresses (memory and every synchronisation object, which
//! is named by its address), threads (named by their [`ThreadId`]) and names chosen by the user. Executions
//! under control are sequentially consistent, so a fence orders nothing that is not ordered already and is
//! independent of everything.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A thread of the program under test: dense numbers in order of creation, 0 is the main thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ThreadId(pub u32);

impl ThreadId {
    /// The thread the program starts with.
    pub const MAIN: ThreadId = ThreadId(0);

    /// The number as an index into per-thread tables.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "thread {}", self.0)
    }
}

/// What an event touches: an address, a thread number or a user's name, as the kind of the event says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ObjectId(pub u64);

impl ObjectId {
    /// Nothing: an event on it is independent of all others.
    pub const NONE: ObjectId = ObjectId(0);
    /// Something the controller cannot name: an event on it conflicts with every event that is not local.
    pub const UNKNOWN: ObjectId = ObjectId(u64::MAX);

    /// The object that stands for a thread (join, park, signals).
    #[inline]
    pub fn of_thread(thread: ThreadId) -> ObjectId {
        ObjectId(u64::from(thread.0) + 1)
    }
}

/// Where the object of an event lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// Memory and the synchronisation objects in it.
    Address,
    /// Threads, see [`ObjectId::of_thread`].
    Thread,
    /// Names the user hands out.
    User,
}

/// How an event touches its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Not at all: the event commutes with everything.
    Local,
    /// Its effect does not depend on the order among other reads.
    Read,
    /// Its order matters against reads and writes.
    Write,
}

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $name:ident = $code:literal, $text:literal, $space:ident, $access:ident;)+) => {
        /// The operation of an event. The codes are part of stored schedules and never change.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        #[repr(u8)]
        pub enum EventKind {
            $($(#[doc = $doc])+ $name = $code,)+
        }

        impl EventKind {
            /// Every kind, by code.
            pub const ALL: &'static [EventKind] = &[$(EventKind::$name,)+];

            /// The kind with this stored code.
            pub fn from_code(code: u8) -> Option<EventKind> {
                match code {
                    $($code => Some(EventKind::$name),)+
                    _ => None,
                }
            }

            /// The name used in reports and traces.
            pub fn name(self) -> &'static str {
                match self {
                    $(EventKind::$name => $text,)+
                }
            }

            /// The space its object lives in.
            #[inline]
            pub const fn space(self) -> Space {
                PROPERTIES[self as usize % PROPERTIES.len()].0
            }

            /// How it touches its object.
            #[inline]
            pub const fn access(self) -> Access {
                PROPERTIES[self as usize % PROPERTIES.len()].1
            }
        }

        /// By code. A table, because kinds come in any order and a jump by kind would be mispredicted.
        static PROPERTIES: [(Space, Access); 128] = {
            let mut properties = [(Space::Address, Access::Local); 128];
            $(properties[$code] = (Space::$space, Access::$access);)+
            properties
        };
    };
}

kinds! {
    /// First step of a thread; the object is the thread itself.
    ThreadStart = 0, "thread-start", Thread, Write;
    /// Creates the thread that is the object.
    ThreadSpawn = 1, "thread-spawn", Thread, Write;
    /// Waits for the thread that is the object to exit.
    ThreadJoin = 2, "thread-join", Thread, Write;
    /// Last step of a thread; the object is the thread itself.
    ThreadExit = 3, "thread-exit", Thread, Write;
    /// Ends the whole process.
    ProcessExit = 4, "process-exit", Thread, Write;

    /// Acquires a mutex or spin lock.
    MutexLock = 8, "mutex-lock", Address, Write;
    /// Tries to acquire a mutex.
    MutexTryLock = 9, "mutex-trylock", Address, Write;
    /// Releases a mutex.
    MutexUnlock = 10, "mutex-unlock", Address, Write;

    /// Acquires a reader-writer lock for reading.
    RwReadLock = 16, "rw-read-lock", Address, Read;
    /// Tries to acquire a reader-writer lock for reading.
    RwTryReadLock = 17, "rw-try-read-lock", Address, Read;
    /// Releases a reader-writer lock held for reading.
    RwReadUnlock = 18, "rw-read-unlock", Address, Read;
    /// Acquires a reader-writer lock for writing.
    RwWriteLock = 19, "rw-write-lock", Address, Write;
    /// Tries to acquire a reader-writer lock for writing.
    RwTryWriteLock = 20, "rw-try-write-lock", Address, Write;
    /// Releases a reader-writer lock held for writing.
    RwWriteUnlock = 21, "rw-write-unlock", Address, Write;

    /// Waits on a condition variable, releasing the mutex in `also`.
    CondWait = 24, "cond-wait", Address, Write;
    /// Wakes one waiter of a condition variable.
    CondSignal = 25, "cond-signal", Address, Write;
    /// Wakes all waiters of a condition variable.
    CondBroadcast = 26, "cond-broadcast", Address, Write;

    /// Takes one from a semaphore.
    SemWait = 32, "sem-wait", Address, Write;
    /// Tries to take one from a semaphore.
    SemTryWait = 33, "sem-trywait", Address, Write;
    /// Gives one to a semaphore.
    SemPost = 34, "sem-post", Address, Write;
    /// Arrives at a barrier.
    BarrierWait = 35, "barrier-wait", Address, Write;
    /// Enters a once-only initialisation.
    Once = 36, "once", Address, Write;

    /// Compares a word and waits on it.
    FutexWait = 40, "futex-wait", Address, Write;
    /// Wakes waiters of a word.
    FutexWake = 41, "futex-wake", Address, Write;
    /// Waits for a permit of the own thread, which is the object.
    Park = 42, "park", Thread, Write;
    /// Gives a permit to the thread that is the object.
    Unpark = 43, "unpark", Thread, Write;

    /// Offers the processor to others.
    Yield = 48, "yield", Address, Local;
    /// Sleeps; time is virtual, so its end is a choice.
    Sleep = 49, "sleep", Address, Local;
    /// A wait with a deadline gives up; the object is what it waited for.
    Timeout = 50, "timeout", Address, Write;

    /// Reads an atomic.
    AtomicLoad = 56, "atomic-load", Address, Read;
    /// Writes an atomic.
    AtomicStore = 57, "atomic-store", Address, Write;
    /// Reads and writes an atomic; a compare-and-swap counts here whether it succeeds or not.
    AtomicRmw = 58, "atomic-rmw", Address, Write;
    /// A memory fence.
    Fence = 59, "fence", Address, Local;
    /// Reads plain memory.
    PlainRead = 60, "plain-read", Address, Read;
    /// Writes plain memory.
    PlainWrite = 61, "plain-write", Address, Write;
    /// A store that a thread made before leaves its store buffer: from now on others see it.
    StoreFlush = 62, "store-flush", Address, Write;

    /// Sends a signal to the thread that is the object.
    SignalSend = 64, "signal-send", Thread, Write;
    /// A signal is delivered to the thread that is the object.
    SignalDeliver = 65, "signal-deliver", Thread, Write;
    /// A call that blocked in the kernel comes back.
    BlockingReturn = 66, "blocking-return", Address, Write;

    /// Allocates memory.
    Allocate = 68, "allocate", Address, Local;
    /// Frees the memory that is the object.
    Free = 69, "free", Address, Write;
    /// Calls something that synchronises nothing: output, a file.
    Call = 70, "call", Address, Local;

    /// A point the user named that only observes.
    UserRead = 72, "user-read", User, Read;
    /// A point the user named that changes something.
    UserWrite = 73, "user-write", User, Write;
}

impl EventKind {
    /// Whether a thread that does this again and again is waiting for others rather than working: the signs
    /// by which spinning threads are recognised.
    #[inline]
    pub const fn is_idle(self) -> bool {
        matches!(self, EventKind::Yield | EventKind::Sleep | EventKind::Timeout)
    }

    /// Whether doing this changes something by itself. Looking, waiting a while and trying to get something do not, and
    /// whether an access to memory does is for those to say who see the memory.
    #[inline]
    pub const fn is_progress(self) -> bool {
        !self.is_idle()
            && !matches!(
                self,
                EventKind::MutexTryLock
                    | EventKind::RwTryReadLock
                    | EventKind::RwTryWriteLock
                    | EventKind::SemTryWait
                    | EventKind::AtomicLoad
                    | EventKind::AtomicStore
                    | EventKind::AtomicRmw
                    | EventKind::Fence
                    | EventKind::PlainRead
                    | EventKind::PlainWrite
                    | EventKind::StoreFlush
            )
    }

    /// The code in stored schedules.
    #[inline]
    pub const fn code(self) -> u8 {
        self as u8
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// The next operation of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Event {
    /// What it touches.
    pub object: ObjectId,
    /// A second thing it touches and changes: the mutex of a [`CondWait`](EventKind::CondWait). Usually none.
    pub also: ObjectId,
    /// Bytes from `object` on that are touched; 1 for everything that is not a memory access.
    pub extent: u32,
    /// The operation.
    pub kind: EventKind,
    /// Where in the code it is, as far as that tells events of one kind apart: the lowest bits of the address, which are the
    /// same wherever the code is loaded. 0 when it is not known. No strategy decides by it whether two events conflict.
    #[serde(default, skip_serializing_if = "is_unknown")]
    pub place: u16,
}

fn is_unknown(place: &u16) -> bool {
    *place == 0
}

impl Event {
    /// An operation on one object.
    #[inline]
    pub const fn new(kind: EventKind, object: ObjectId) -> Event {
        Event { object, also: ObjectId::NONE, extent: 1, kind, place: 0 }
    }

    /// An operation that touches nothing others can see.
    #[inline]
    pub const fn local(kind: EventKind) -> Event {
        Event::new(kind, ObjectId::NONE)
    }

    /// An operation on a thread: start, spawn, join, exit, park, signals.
    #[inline]
    pub fn on_thread(kind: EventKind, thread: ThreadId) -> Event {
        Event::new(kind, ObjectId::of_thread(thread))
    }

    /// A memory access of `bytes` bytes.
    #[inline]
    pub const fn access(kind: EventKind, address: u64, bytes: u32) -> Event {
        Event { object: ObjectId(address), also: ObjectId::NONE, extent: bytes, kind, place: 0 }
    }

    /// A wait on a condition variable that releases `mutex`.
    #[inline]
    pub const fn cond_wait(condition: ObjectId, mutex: ObjectId) -> Event {
        Event { object: condition, also: mutex, extent: 1, kind: EventKind::CondWait, place: 0 }
    }

    /// The same event, made by the code at an address.
    #[inline]
    pub const fn at(self, code: usize) -> Event {
        Event { place: code as u16, ..self }
    }

    /// Whether it commutes with every other event.
    #[inline]
    pub fn is_local(&self) -> bool {
        self.kind.access() == Access::Local || (self.object == ObjectId::NONE && self.also == ObjectId::NONE)
    }

    /// Whether the order of the two events can matter, when different threads carry them out.
    #[inline]
    pub fn conflicts(&self, other: &Event) -> bool {
        // A first look without branches, by which nearly all pairs part: the distance in either direction reaches
        // past the other's bytes, and nothing else is touched.
        let ahead = self.object.0.wrapping_sub(other.object.0) < u64::from(other.extent.max(1));
        let behind = other.object.0.wrapping_sub(self.object.0) < u64::from(self.extent.max(1));
        let unknown = (self.object == ObjectId::UNKNOWN) | (other.object == ObjectId::UNKNOWN);
        let more = (self.also.0 | other.also.0) != 0;
        (ahead | behind | unknown | more) && self.conflicts_closely(other)
    }

    fn conflicts_closely(&self, other: &Event) -> bool {
        if self.is_local() || other.is_local() {
            return false;
        }
        if self.object == ObjectId::UNKNOWN || other.object == ObjectId::UNKNOWN {
            return true;
        }
        if self.kind.space() != other.kind.space() {
            return false;
        }
        let both_read = self.kind.access() == Access::Read && other.kind.access() == Access::Read;
        (!both_read && overlap(self.object, self.extent, other.object, other.extent))
            || overlap(self.also, 1, other.object, other.extent)
            || overlap(self.object, self.extent, other.also, 1)
            || overlap(self.also, 1, other.also, 1)
    }
}

#[inline]
fn overlap(a: ObjectId, a_bytes: u32, b: ObjectId, b_bytes: u32) -> bool {
    if a == ObjectId::NONE || b == ObjectId::NONE {
        return false;
    }
    // The distance decides without overflow at the end of the address space.
    if a.0 <= b.0 { b.0 - a.0 < u64::from(a_bytes.max(1)) } else { a.0 - b.0 < u64::from(b_bytes.max(1)) }
}

impl fmt::Display for Event {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.kind.name())?;
        match (self.object, self.kind.space()) {
            (ObjectId::NONE, _) => Ok(()),
            (ObjectId::UNKNOWN, _) => out.write_str(" of something unknown"),
            (ObjectId(id), Space::Thread) => write!(out, " of thread {}", id - 1),
            (ObjectId(id), Space::User) => write!(out, " {id}"),
            (ObjectId(id), Space::Address) => write!(out, " {id:#x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use EventKind::*;

    #[test]
    fn codes_round_trip() {
        for &kind in EventKind::ALL {
            assert_eq!(EventKind::from_code(kind.code()), Some(kind));
        }
        assert_eq!(EventKind::from_code(255), None);
    }

    #[test]
    fn reads_commute_and_writes_do_not() {
        let read = Event::access(AtomicLoad, 0x1000, 4);
        let write = Event::access(AtomicStore, 0x1000, 4);
        assert!(!read.conflicts(&read));
        assert!(read.conflicts(&write));
        assert!(write.conflicts(&read));
        assert!(write.conflicts(&write));
    }

    #[test]
    fn accesses_conflict_where_bytes_overlap() {
        let wide = Event::access(PlainWrite, 0x1000, 16);
        assert!(wide.conflicts(&Event::access(PlainRead, 0x100f, 1)));
        assert!(!wide.conflicts(&Event::access(PlainRead, 0x1010, 1)));
        assert!(wide.conflicts(&Event::new(MutexLock, ObjectId(0x1008))));
        let last = Event::access(PlainWrite, u64::MAX - 8, 64);
        assert!(last.conflicts(&Event::access(PlainRead, u64::MAX - 2, 1)));
    }

    #[test]
    fn conflict_is_symmetric() {
        let mut events = vec![Event::cond_wait(ObjectId(8), ObjectId(16)), Event::local(Fence)];
        for kind in [AtomicLoad, PlainWrite, Park, UserRead, BlockingReturn] {
            for (object, extent) in
                [(0, 1), (1, 8), (8, 1), (9, 4), (16, 64), (u64::MAX - 3, 9), (u64::MAX, 1)]
            {
                events.push(Event::access(kind, object, extent));
            }
        }
        for a in &events {
            assert!(events.iter().all(|b| a.conflicts(b) == b.conflicts(a)));
        }
    }

    #[test]
    fn spaces_do_not_meet() {
        let park = Event::on_thread(Park, ThreadId(7));
        assert!(park.conflicts(&Event::on_thread(Unpark, ThreadId(7))));
        assert!(!park.conflicts(&Event::on_thread(Unpark, ThreadId(6))));
        assert!(!park.conflicts(&Event::access(PlainWrite, 8, 8)));
        assert!(!park.conflicts(&Event::new(UserWrite, ObjectId(8))));
    }

    #[test]
    fn a_wait_touches_its_mutex_too() {
        let wait = Event::cond_wait(ObjectId(0x10), ObjectId(0x80));
        assert!(wait.conflicts(&Event::new(CondSignal, ObjectId(0x10))));
        assert!(wait.conflicts(&Event::new(MutexLock, ObjectId(0x80))));
        assert!(!wait.conflicts(&Event::new(MutexLock, ObjectId(0x88))));
    }

    #[test]
    fn the_unknown_meets_everything_but_local_steps() {
        let unknown = Event::new(BlockingReturn, ObjectId::UNKNOWN);
        assert!(unknown.conflicts(&Event::on_thread(Unpark, ThreadId(1))));
        assert!(!unknown.conflicts(&Event::local(Yield)));
        assert!(!Event::local(UserWrite).conflicts(&unknown));
    }
}
