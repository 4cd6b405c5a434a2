//! The enabled threads as a dense list: insert, remove and index in constant time.

use crate::event::ThreadId;

const ABSENT: u32 = u32::MAX;

/// The set of enabled threads, in an order that depends only on the calls made.
#[derive(Clone, Debug, Default)]
pub struct ReadySet {
    members: Vec<ThreadId>,
    /// Where each thread stands in `members`, or `ABSENT`.
    places: Vec<u32>,
}

impl ReadySet {
    /// Forgets all threads and keeps the memory.
    pub fn clear(&mut self) {
        self.members.clear();
        self.places.clear();
    }

    /// Makes room for a thread, so that nothing allocates afterwards.
    pub fn reserve(&mut self, thread: ThreadId) {
        let count = thread.index() + 1;
        if self.places.len() < count {
            self.places.resize(count, ABSENT);
        }
        self.members.reserve(count.saturating_sub(self.members.len()));
    }

    /// Adds the thread; false when it was there.
    #[inline]
    pub fn insert(&mut self, thread: ThreadId) -> bool {
        if thread.index() >= self.places.len() {
            self.reserve(thread);
        }
        if self.places[thread.index()] != ABSENT {
            return false;
        }
        self.places[thread.index()] = self.members.len() as u32;
        self.members.push(thread);
        true
    }

    /// Takes the thread out; false when it was not there.
    #[inline]
    pub fn remove(&mut self, thread: ThreadId) -> bool {
        let Some(&place) = self.places.get(thread.index()) else { return false };
        if place == ABSENT {
            return false;
        }
        self.members.swap_remove(place as usize);
        if let Some(&moved) = self.members.get(place as usize) {
            self.places[moved.index()] = place;
        }
        self.places[thread.index()] = ABSENT;
        true
    }

    /// Whether the thread is enabled.
    #[inline]
    pub fn contains(&self, thread: ThreadId) -> bool {
        self.places.get(thread.index()).is_some_and(|&place| place != ABSENT)
    }

    /// How many threads are enabled.
    #[inline]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether no thread is enabled.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The enabled threads.
    #[inline]
    pub fn as_slice(&self) -> &[ThreadId] {
        &self.members
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_and_go() {
        let mut set = ReadySet::default();
        for id in 0..5 {
            assert!(set.insert(ThreadId(id)));
        }
        assert!(!set.insert(ThreadId(3)));
        assert!(set.remove(ThreadId(1)));
        assert!(!set.remove(ThreadId(1)));
        assert!(!set.remove(ThreadId(99)));
        let mut left: Vec<u32> = set.as_slice().iter().map(|thread| thread.0).collect();
        left.sort_unstable();
        assert_eq!(left, [0, 2, 3, 4]);
        assert!(left.iter().all(|&id| set.contains(ThreadId(id))));
        set.clear();
        assert!(set.is_empty() && !set.contains(ThreadId(0)));
    }
}
