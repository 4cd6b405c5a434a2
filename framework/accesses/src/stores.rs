//! A thread's store buffer, as x86 has one; pure.
//!
//! Only one thread runs at a time, so each can have its own view of memory, and loads need no help: a store is done in place
//! and noted, with what lay below it. When the thread is switched away its noted stores are undone, newest first, and when it
//! is switched to they are done again, oldest first, over what lies there now. Both are the same exchange of what a note holds
//! with what memory holds, so a note has room for one of them. A store becomes visible to others when the oldest note is
//! forgotten with its value in memory.
//!
//! Values are read from memory when they are undone, not when they are noted: a store of the same thread that was not seen and
//! went over a noted one is kept with it. Stores that are not worth a step of their own are noted only behind one that is, and
//! become visible with it, so that they overtake nothing.

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

/// The longest store that can wait: a vector of 512 bits.
pub const WIDEST: usize = 64;

/// Stores worth a step that wait in one buffer at most, about as many as processors have room for.
pub const DEEPEST: usize = 48;

/// All stores that wait in one buffer at most.
const MOST: usize = 256;

/// Memory that stores are done in.
pub trait Memory {
    /// Fills `bytes` with what lies at the address.
    fn read(&mut self, address: usize, bytes: &mut [u8]);

    /// The other way round.
    fn write(&mut self, address: usize, bytes: &[u8]);
}

/// A store that waits.
#[derive(Clone, Copy)]
pub struct Store {
    /// Where it is to.
    pub address: usize,
    /// How many bytes.
    pub bytes: u32,
    /// The instruction that made it.
    pub code: usize,
    /// It is worth a step to become visible.
    pub step: bool,
    /// What lies below it while the thread's view is in memory; else what was stored.
    held: [u8; WIDEST],
}

impl Store {
    /// Whether it touches one of these bytes.
    pub fn overlaps(&self, address: usize, bytes: usize) -> bool {
        self.address < address.saturating_add(bytes)
            && address < self.address.saturating_add(self.bytes as usize)
    }

    fn exchange(&mut self, memory: &mut impl Memory) {
        let bytes = self.bytes as usize;
        let mut there = [0; WIDEST];
        memory.read(self.address, &mut there[..bytes]);
        memory.write(self.address, &self.held[..bytes]);
        self.held[..bytes].copy_from_slice(&there[..bytes]);
    }
}

/// What a thread stored and others do not see.
#[derive(Default)]
pub struct StoreBuffer {
    /// Oldest first; the first, if there is one, is worth a step.
    waiting: Vec<Store>,
    /// Those that are worth a step.
    steps: usize,
    /// The view of the thread is in memory.
    shown: bool,
}

impl StoreBuffer {
    /// Whether nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether another store has no room.
    pub fn is_full(&self) -> bool {
        self.steps >= DEEPEST || self.waiting.len() >= MOST
    }

    /// What becomes visible first.
    pub fn oldest(&self) -> Option<&Store> {
        self.waiting.first()
    }

    /// The newest store worth a step that touches one of these bytes.
    pub fn newest_at(&self, address: usize, bytes: usize) -> Option<&Store> {
        self.waiting.iter().rev().find(|store| store.step && store.overlaps(address, bytes))
    }

    /// The thread, whose view is in memory, is about to store. False when that cannot wait, because it is too long.
    pub fn note(
        &mut self,
        memory: &mut impl Memory,
        address: usize,
        bytes: usize,
        code: usize,
        step: bool,
    ) -> bool {
        if bytes == 0 || bytes > WIDEST || !step && self.is_empty() {
            return false;
        }
        if self.is_empty() {
            self.shown = true;
        }
        let mut store = Store { address, bytes: bytes as u32, code, step, held: [0; WIDEST] };
        memory.read(address, &mut store.held[..bytes]);
        self.waiting.push(store);
        self.steps += usize::from(step);
        true
    }

    /// The thread is switched away.
    pub fn hide(&mut self, memory: &mut impl Memory) {
        if core::mem::take(&mut self.shown) {
            self.waiting.iter_mut().rev().for_each(|store| store.exchange(memory));
        }
    }

    /// The thread is switched to.
    pub fn show(&mut self, memory: &mut impl Memory) {
        if !core::mem::replace(&mut self.shown, true) {
            self.waiting.iter_mut().for_each(|store| store.exchange(memory));
        }
    }

    /// The oldest store becomes visible, with those behind it that are worth no step. No other thread's view is in memory.
    pub fn flush(&mut self, memory: &mut impl Memory) {
        let behind = self.waiting.iter().skip(1).position(|store| store.step);
        self.flush_first(memory, behind.map_or(self.waiting.len(), |place| place + 1));
    }

    /// All stores up to the last that touches one of these bytes become visible. No other thread's view is in memory.
    pub fn flush_through(&mut self, memory: &mut impl Memory, address: usize, bytes: usize) {
        let last = self.waiting.iter().rposition(|store| store.overlaps(address, bytes));
        let Some(last) = last else { return };
        let behind = self.waiting[last + 1..].iter().position(|store| store.step);
        self.flush_first(memory, behind.map_or(self.waiting.len(), |place| last + 1 + place));
    }

    fn flush_first(&mut self, memory: &mut impl Memory, count: usize) {
        for store in self.waiting.drain(..count) {
            self.steps -= usize::from(store.step);
            // In the thread's own view it lies there already, and the notes above it hold it as what lies below them.
            if !self.shown {
                memory.write(store.address, &store.held[..store.bytes as usize]);
            }
        }
    }

    /// All stores of the thread, whose view is in memory, become visible.
    #[inline]
    pub fn drain(&mut self) {
        debug_assert!(self.shown || self.is_empty());
        self.waiting.clear();
        self.steps = 0;
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.waiting.clear();
        (self.steps, self.shown) = (0, false);
    }
}
