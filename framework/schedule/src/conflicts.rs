//! Which enabled threads are about to do something that conflicts with a given event.
//!
//! A hash table of intrusive lists, keyed by what an event touches: 8-byte granules of the address space, threads,
//! user names. An event of usual size touches one or two granules, a wait on a condition variable one more; events
//! that touch more (or something unknown) are kept in a list that every question goes through. Constant time per
//! change, and per question the number of candidates; nothing allocates after [`reserve`](ConflictIndex::reserve).

use crate::event::{Event, ObjectId, Space, ThreadId};

const NIL: u32 = u32::MAX;
/// Places in lists a thread may take: two granules, one for `also`.
const NODES: usize = 3;

#[derive(Clone, Copy, Debug)]
struct Node {
    next: u32,
    previous: u32,
    /// The list it is in; `NIL`: none.
    list: u32,
}

const FREE: Node = Node { next: NIL, previous: NIL, list: NIL };

/// Enabled threads, by what their pending events touch. The events themselves stay with the caller.
#[derive(Clone, Debug, Default)]
pub struct ConflictIndex {
    /// First node of each list; the last list is for events that touch much.
    heads: Vec<u32>,
    /// By thread. A thread with an event that is not local has at least its first node in a list.
    nodes: Vec<Node>,
}

enum Touched {
    /// Up to three keys; unused ones repeat the first.
    Few([u64; NODES], usize),
    Much,
}

fn touched(event: &Event) -> Touched {
    if event.object == ObjectId::UNKNOWN || event.also == ObjectId::UNKNOWN {
        return Touched::Much;
    }
    let mut keys = [0; NODES];
    let mut count = 0;
    let mut add = |key: u64| {
        if count < NODES && !keys[..count].contains(&key) {
            keys[count] = key;
            count += 1;
        }
    };
    let space = match event.kind.space() {
        Space::Address => 0,
        Space::Thread => 1 << 62,
        Space::User => 1 << 63,
    };
    if event.kind.space() == Space::Address {
        if event.object != ObjectId::NONE {
            let last = event.object.0.saturating_add(u64::from(event.extent.max(1)) - 1) >> 3;
            let first = event.object.0 >> 3;
            if last - first > 1 {
                return Touched::Much;
            }
            add(first);
            add(last);
        }
        if event.also != ObjectId::NONE {
            add(event.also.0 >> 3);
        }
    } else {
        // Names are compared as ranges of one, like addresses, so no granules.
        for object in [event.object, event.also] {
            if object != ObjectId::NONE {
                add(space ^ object.0);
            }
        }
    }
    Touched::Few(keys, count)
}

impl ConflictIndex {
    /// Forgets all events and keeps the memory.
    pub fn clear(&mut self) {
        self.heads.fill(NIL);
        self.nodes.fill(FREE);
    }

    /// Makes room for a thread; `pending` has the events of the threads that are in the index.
    pub fn reserve(&mut self, thread: ThreadId, pending: &[Event]) {
        let threads = thread.index() + 1;
        if threads * NODES <= self.nodes.len() {
            return;
        }
        self.nodes.resize(threads * NODES, FREE);
        let lists = (2 * threads).next_power_of_two().max(16) + 1;
        if lists > self.heads.len() {
            self.heads.clear();
            self.heads.resize(lists, NIL);
            for (index, event) in pending.iter().enumerate().take(threads) {
                let first = index * NODES;
                if self.nodes[first].list != NIL {
                    self.nodes[first..first + NODES].fill(FREE);
                    self.insert(ThreadId(index as u32), event);
                }
            }
        }
    }

    #[inline]
    fn list(&self, key: u64) -> u32 {
        // Fibonacci hashing: the upper bits of the product depend on all bits of the key.
        let lists = self.heads.len() as u64 - 1;
        ((key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) & (lists - 1)) as u32
    }

    #[inline]
    fn link(&mut self, node: usize, list: u32) {
        let head = self.heads[list as usize];
        self.nodes[node] = Node { next: head, previous: NIL, list };
        if head != NIL {
            self.nodes[head as usize].previous = node as u32;
        }
        self.heads[list as usize] = node as u32;
    }

    #[inline]
    fn unlink(&mut self, node: usize) {
        let Node { next, previous, list } = self.nodes[node];
        if list == NIL {
            return;
        }
        if previous == NIL {
            self.heads[list as usize] = next;
        } else {
            self.nodes[previous as usize].next = next;
        }
        if next != NIL {
            self.nodes[next as usize].previous = previous;
        }
        self.nodes[node] = FREE;
    }

    /// The thread, for which there is room, is enabled and about to do this; replaces what it was about to do before.
    pub fn insert(&mut self, thread: ThreadId, event: &Event) {
        self.remove(thread);
        if event.is_local() {
            return;
        }
        let base = thread.index() * NODES;
        match touched(event) {
            Touched::Few(keys, count) => {
                for (offset, &key) in keys[..count].iter().enumerate() {
                    self.link(base + offset, self.list(key));
                }
            }
            Touched::Much => self.link(base, self.heads.len() as u32 - 1),
        }
    }

    /// The thread is about to do nothing.
    pub fn remove(&mut self, thread: ThreadId) {
        for node in thread.index() * NODES..((thread.index() + 1) * NODES).min(self.nodes.len()) {
            self.unlink(node);
        }
    }

    /// Calls `found` for every other thread whose event conflicts with `event`; a thread may be named twice.
    pub fn conflicting(
        &self,
        thread: ThreadId,
        event: &Event,
        pending: &[Event],
        mut found: impl FnMut(ThreadId),
    ) {
        if event.is_local() {
            return;
        }
        let mut check = |index: usize| {
            if index != thread.index() && pending[index].conflicts(event) {
                found(ThreadId(index as u32));
            }
        };
        match touched(event) {
            Touched::Few(keys, count) => {
                let lists = keys[..count].iter().map(|&key| self.list(key));
                for list in lists.chain([self.heads.len() as u32 - 1]) {
                    let mut node = self.heads[list as usize];
                    while node != NIL {
                        check(node as usize / NODES);
                        node = self.nodes[node as usize].next;
                    }
                }
            }
            Touched::Much => {
                let threads = self.nodes.len() / NODES;
                (0..threads).filter(|index| self.nodes[index * NODES].list != NIL).for_each(check);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventKind::{self, *};
    use proptest::prelude::*;

    fn event() -> impl Strategy<Value = Event> {
        let kinds = [AtomicLoad, AtomicStore, PlainRead, PlainWrite, MutexLock, RwReadLock, Park, Unpark];
        let more = [UserRead, UserWrite, Yield, CondWait, BlockingReturn, FutexWait];
        let kind = prop::sample::select([kinds.as_slice(), more.as_slice()].concat());
        let object = prop_oneof![8 => 0u64..40, 1 => Just(u64::MAX), 1 => u64::MAX - 20..u64::MAX];
        (kind, object, 0u64..40, 1u32..40).prop_map(|(kind, object, also, extent)| Event {
            object: ObjectId(object),
            also: if kind == EventKind::CondWait { ObjectId(also) } else { ObjectId::NONE },
            extent: if kind.space() == Space::Address { extent } else { 1 },
            kind,
            place: 0,
        })
    }

    proptest! {
        #[test]
        fn agrees_with_a_scan(events in prop::collection::vec((0u32..40, event(), any::<bool>()), 1..120)) {
            let mut index = ConflictIndex::default();
            let mut pending = vec![Event::local(Yield); 40];
            let mut enabled = [false; 40];
            for (thread, event, keep) in events {
                let id = ThreadId(thread);
                index.reserve(id, &pending);
                enabled[thread as usize] = keep;
                if keep {
                    pending[thread as usize] = event;
                    index.insert(id, &event);
                } else {
                    index.remove(id);
                }
                let mut found = Vec::new();
                index.conflicting(id, &event, &pending, |other| found.push(other.0));
                found.sort_unstable();
                found.dedup();
                let scanned: Vec<u32> = (0..40u32)
                    .filter(|&other| other != thread)
                    .filter(|&other| enabled[other as usize] && pending[other as usize].conflicts(&event))
                    .collect();
                prop_assert_eq!(found, scanned);
            }
        }
    }
}
