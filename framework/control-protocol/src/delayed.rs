//! Stores that were still in a store buffer when another thread read what they were to change: what the library tells of them.

use std::sync::atomic::{AtomicU64, Ordering};

/// Such reads that are told of one run, the last ones.
const DELAYED: usize = 8;

/// One of them.
#[repr(C)]
#[derive(Debug)]
struct Slot {
    address: AtomicU64,
    store: AtomicU64,
    stored_by: AtomicU64,
    read: AtomicU64,
    read_by: AtomicU64,
    step: AtomicU64,
}

/// A thread read what a store of another thread was to change, while that store waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedStore {
    /// The first byte of the store.
    pub address: u64,
    /// The instruction that stored, or where the call that reports it returns to.
    pub store: u64,
    /// Who.
    pub stored_by: u64,
    /// The instruction that read.
    pub read: u64,
    /// Who.
    pub read_by: u64,
    /// The step of the run at which that was.
    pub step: u64,
}

/// What a run tells of them.
#[repr(C)]
#[derive(Debug)]
pub struct DelayedReport {
    /// How many reads there were.
    pub count: AtomicU64,
    /// Threads of the run that only flush stores.
    pub flushers: AtomicU64,
    slots: [Slot; DELAYED],
}

impl Slot {
    fn words(&self) -> [&AtomicU64; 6] {
        [&self.address, &self.store, &self.stored_by, &self.read, &self.read_by, &self.step]
    }
}

impl DelayedReport {
    pub(crate) fn words(&self) -> impl Iterator<Item = &AtomicU64> {
        [&self.count, &self.flushers].into_iter().chain(self.slots.iter().flat_map(Slot::words))
    }

    /// Tells of one more.
    pub fn add(&self, one: DelayedStore) {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let slot = &self.slots[count as usize % DELAYED];
        let values = [one.address, one.store, one.stored_by, one.read, one.read_by, one.step];
        slot.words().into_iter().zip(values).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
    }

    /// The last ones, in their order.
    pub fn all(&self) -> Vec<DelayedStore> {
        let count = self.count.load(Ordering::Relaxed);
        let one = |number: u64| {
            let [address, store, stored_by, read, read_by, step] =
                self.slots[number as usize % DELAYED].words().map(|word| word.load(Ordering::Relaxed));
            DelayedStore { address, store, stored_by, read, read_by, step }
        };
        (count.saturating_sub(DELAYED as u64)..count).map(one).collect()
    }
}
