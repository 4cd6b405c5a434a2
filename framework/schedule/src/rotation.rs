//! The order in which a scheduler that does not preempt goes through the enabled threads.
//!
//! The running thread goes on while it can; when it blocks, ends or yields, the next enabled thread by number has
//! its turn, round and round. Systematic search, delay bounding, replay and guided runs all deviate from this
//! order and fall back to it.

use crate::event::{Event, ThreadId};

/// The enabled threads as a bit set, and whose turn it is.
#[derive(Clone, Debug)]
pub struct Rotation {
    words: Vec<u64>,
    enabled: usize,
    /// Who ran last; nobody at the start.
    current: Option<ThreadId>,
    /// The running thread offered its turn.
    yielding: bool,
    /// Its steps without a break, and after how many it offers its turn whatever it does.
    stretch: u32,
    patience: u32,
}

/// Steps without a break after which a thread has had its turn where that is limited: one that waits with changing values
/// looks as if it worked. Many times what the programs have that can be searched, and few compared with the limit at which
/// a run counts as endless.
const PATIENCE: u32 = 20_000;

impl Default for Rotation {
    fn default() -> Rotation {
        Rotation {
            words: Vec::new(),
            enabled: 0,
            current: None,
            yielding: false,
            stretch: 0,
            patience: u32::MAX,
        }
    }
}

impl Rotation {
    /// An order in which no thread goes on for ever while another could.
    pub fn fair() -> Rotation {
        Rotation { patience: PATIENCE, ..Rotation::default() }
    }

    /// Forgets all threads and keeps the memory.
    pub fn clear(&mut self) {
        self.words.fill(0);
        self.enabled = 0;
        self.current = None;
        self.yielding = false;
        self.stretch = 0;
    }

    /// Makes room for a thread.
    pub fn reserve(&mut self, thread: ThreadId) {
        let words = thread.index() / 64 + 1;
        if self.words.len() < words {
            self.words.resize(words, 0);
        }
    }

    /// The thread is enabled and about to do `next`.
    pub fn ready(&mut self, thread: ThreadId, next: Event) {
        self.reserve(thread);
        let (word, bit) = (thread.index() / 64, 1 << (thread.index() % 64));
        self.enabled += usize::from(self.words[word] & bit == 0);
        self.words[word] |= bit;
        if self.current == Some(thread) {
            self.yielding = next.kind.is_idle() || self.stretch >= self.patience;
        }
    }

    /// The thread is not enabled.
    pub fn remove(&mut self, thread: ThreadId) {
        let (word, bit) = (thread.index() / 64, 1 << (thread.index() % 64));
        if let Some(word) = self.words.get_mut(word)
            && *word & bit != 0
        {
            *word &= !bit;
            self.enabled -= 1;
        }
    }

    /// Whether the thread is enabled.
    pub fn contains(&self, thread: ThreadId) -> bool {
        self.words.get(thread.index() / 64).is_some_and(|word| word >> (thread.index() % 64) & 1 == 1)
    }

    /// How many threads are enabled.
    pub fn len(&self) -> usize {
        self.enabled
    }

    /// Whether no thread is enabled.
    pub fn is_empty(&self) -> bool {
        self.enabled == 0
    }

    /// How many threads may come next: all enabled ones, but for a running thread that gives way to others.
    pub fn candidates(&self) -> usize {
        let gives_way = self.enabled > 1 && self.yielding && self.current_goes_on();
        self.enabled - usize::from(gives_way)
    }

    fn current_goes_on(&self) -> bool {
        self.current.is_some_and(|current| self.contains(current))
    }

    /// Whether switching away from the running thread would take the processor from it.
    pub fn would_preempt(&self) -> bool {
        self.current_goes_on() && !self.yielding
    }

    /// Says who runs now.
    pub fn turn(&mut self, thread: ThreadId) {
        self.stretch = self.stretch.saturating_add(1);
        if self.current != Some(thread) {
            self.current = Some(thread);
            self.yielding = false;
            self.stretch = 0;
        }
    }

    /// The `place`-th thread in the order: 0 is who runs if nothing is forced.
    pub fn at(&self, place: usize) -> Option<ThreadId> {
        if place >= self.enabled {
            return None;
        }
        let mut thread = match self.current {
            Some(current) if self.would_preempt() => current,
            Some(current) => self.from(current.index() + 1)?,
            None => self.from(0)?,
        };
        for _ in 0..place {
            thread = self.from(thread.index() + 1)?;
        }
        Some(thread)
    }

    /// The next enabled thread by number from `start` on, round and round.
    fn from(&self, start: usize) -> Option<ThreadId> {
        let (first, offset) = (start / 64, start % 64);
        let count = self.words.len();
        for turn in 0..=count {
            let index = (first + turn) % count.max(1);
            let mut word = *self.words.get(index)?;
            if turn == 0 && first < count {
                word &= u64::MAX << offset;
            }
            if word != 0 {
                return Some(ThreadId((index * 64) as u32 + word.trailing_zeros()));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventKind;

    fn order(rotation: &Rotation) -> Vec<u32> {
        (0..rotation.len()).map(|place| rotation.at(place).unwrap().0).collect()
    }

    #[test]
    fn a_thread_that_goes_on_and_on_offers_its_turn() {
        let work = Event::local(EventKind::Fence);
        let mut rotation = Rotation::fair();
        rotation.ready(ThreadId(0), work);
        rotation.ready(ThreadId(1), work);
        let mut steps = 0;
        while rotation.at(0) != Some(ThreadId(1)) {
            rotation.turn(ThreadId(0));
            rotation.ready(ThreadId(0), work);
            steps += 1;
            assert!(steps < 2 * PATIENCE);
        }
        assert!(steps >= PATIENCE && !rotation.would_preempt());
        rotation.turn(ThreadId(1));
        rotation.ready(ThreadId(1), work);
        assert_eq!(order(&rotation), [1, 0], "the other has as long a turn");
    }

    #[test]
    fn the_running_thread_is_first_unless_it_yields() {
        let work = Event::local(EventKind::Fence);
        let mut rotation = Rotation::default();
        for thread in [1, 3, 63, 64, 130] {
            rotation.ready(ThreadId(thread), work);
        }
        rotation.turn(ThreadId(64));
        assert_eq!(order(&rotation), [64, 130, 1, 3, 63]);
        rotation.ready(ThreadId(64), Event::local(EventKind::Yield));
        assert_eq!(order(&rotation), [130, 1, 3, 63, 64]);
        assert!(!rotation.would_preempt());
        rotation.remove(ThreadId(64));
        assert_eq!(order(&rotation), [130, 1, 3, 63]);
        rotation.turn(ThreadId(130));
        assert_eq!(order(&rotation), [130, 1, 3, 63]);
        rotation.remove(ThreadId(130));
        assert_eq!(order(&rotation), [1, 3, 63]);
        rotation.clear();
        assert_eq!(rotation.at(0), None);
    }
}
