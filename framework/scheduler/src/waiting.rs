//! The lines of threads that are interested in an object, first come first.
//!
//! The links are in the threads; the table only knows the ends of each line and holds no entry for an object that
//! nobody stands in line for, so it stays as small as the number of threads.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use waylay_schedule::ThreadId;

use super::thread::{Key, Thread};

/// Keys are addresses: one multiplication spreads them, and equal runs hash equally.
#[derive(Default)]
pub struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_usize(byte as usize);
        }
    }

    fn write_usize(&mut self, value: usize) {
        // 2^64 / golden ratio, the multiplier of Fibonacci hashing.
        self.0 = (self.0 ^ value as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }
}

/// A map keyed by addresses.
pub type ByAddress<K, V> = HashMap<K, V, BuildHasherDefault<AddressHasher>>;

#[derive(Clone, Copy, Debug)]
struct Line {
    first: ThreadId,
    last: ThreadId,
}

/// Lines are told apart by so many bits of their address before the table is asked.
const PLACES: usize = 256;

/// All lines.
#[derive(Debug)]
pub(super) struct Lines {
    table: ByAddress<Key, Line>,
    /// How many threads stand in lines whose keys share a place: none means that the table need not be asked, which
    /// is what most operations on most objects find.
    crowd: [u32; PLACES],
}

impl Default for Lines {
    fn default() -> Self {
        Self { table: ByAddress::default(), crowd: [0; PLACES] }
    }
}

/// Objects of the program are at least four bytes apart, and mostly sixteen.
fn place(key: Key) -> usize {
    (key.0 >> 2 ^ key.0 >> 7) % PLACES
}

impl Lines {
    pub(super) fn clear(&mut self) {
        if !self.table.is_empty() {
            self.table.clear();
            self.crowd = [0; PLACES];
        }
    }

    /// Whether surely nobody stands in line for `key`.
    #[inline]
    pub(super) fn is_quiet(&self, key: Key) -> bool {
        self.crowd[place(key)] == 0
    }

    /// The first thread in the line of `key`.
    pub(super) fn first(&self, key: Key) -> Option<ThreadId> {
        if self.is_quiet(key) { None } else { self.table.get(&key).map(|line| line.first) }
    }

    /// Puts a thread at the end of the line of `key`.
    pub(super) fn join(&mut self, threads: &mut [Thread], thread: ThreadId, key: Key) {
        debug_assert!(threads[thread.index()].interest.is_none());
        let mut previous = None;
        self.crowd[place(key)] += 1;
        self.table
            .entry(key)
            .and_modify(|line| {
                previous = Some(line.last);
                line.last = thread;
            })
            .or_insert(Line { first: thread, last: thread });
        if let Some(previous) = previous {
            threads[previous.index()].next = Some(thread);
        }
        let entry = &mut threads[thread.index()];
        entry.interest = Some(key);
        entry.previous = previous;
        entry.next = None;
    }

    /// Takes a thread out of whatever line it stands in.
    pub(super) fn leave(&mut self, threads: &mut [Thread], thread: ThreadId) {
        let entry = &mut threads[thread.index()];
        let Some(key) = entry.interest.take() else { return };
        let (previous, next) = (entry.previous.take(), entry.next.take());
        self.crowd[place(key)] -= 1;
        if let Some(previous) = previous {
            threads[previous.index()].next = next;
        }
        if let Some(next) = next {
            threads[next.index()].previous = previous;
        }
        match (previous, next) {
            (None, None) => {
                self.table.remove(&key);
            }
            (None, Some(next)) => {
                if let Some(line) = self.table.get_mut(&key) {
                    line.first = next;
                }
            }
            (Some(previous), None) => {
                if let Some(line) = self.table.get_mut(&key) {
                    line.last = previous;
                }
            }
            (Some(_), Some(_)) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use waylay_schedule::{Event, EventKind};

    use super::*;

    fn order(lines: &Lines, threads: &[Thread], key: Key) -> Vec<u32> {
        let mut seen = Vec::new();
        let mut at = lines.first(key);
        while let Some(thread) = at {
            seen.push(thread.0);
            at = threads[thread.index()].next;
        }
        seen
    }

    #[test]
    fn lines_keep_their_order_when_anyone_leaves() {
        let mut threads: Vec<Thread> = (0..6).map(|_| Thread::new(Event::local(EventKind::Yield))).collect();
        let mut lines = Lines::default();
        for id in 0..5 {
            lines.join(&mut threads, ThreadId(id), Key(64));
        }
        lines.join(&mut threads, ThreadId(5), Key(128));
        lines.leave(&mut threads, ThreadId(2));
        assert_eq!(order(&lines, &threads, Key(64)), [0, 1, 3, 4]);
        lines.leave(&mut threads, ThreadId(0));
        lines.leave(&mut threads, ThreadId(4));
        lines.join(&mut threads, ThreadId(0), Key(64));
        assert_eq!(order(&lines, &threads, Key(64)), [1, 3, 0]);
        for id in [1, 0, 3, 5, 2] {
            lines.leave(&mut threads, ThreadId(id));
        }
        assert!(lines.is_quiet(Key(64)) && lines.is_quiet(Key(128)) && lines.table.is_empty());
    }
}
