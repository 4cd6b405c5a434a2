// A ring of slots, given out by tickets. A writer whose slot is busy draws another ticket; after two it goes on as if the last
// slot were free. The twin draws on. A slot is its writer's alone: two writers leave a record of which each wrote a half.
use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;

#[derive(Default)]
struct Slot {
    busy: AtomicBool,
    record: UnsafeCell<(usize, usize)>,
}

#[derive(Default)]
struct Ring {
    tickets: AtomicUsize,
    slots: [Slot; 3],
}

// SAFETY: a record is accessed by the thread that has its slot; that this is one thread at a time is what is tested.
unsafe impl Sync for Ring {}

impl Ring {
    fn reserve(&self) -> &Slot {
        let mut attempts = 0;
        loop {
            let slot = &self.slots[self.tickets.fetch_add(1, SeqCst) % self.slots.len()];
            attempts += 1;
            if !slot.busy.swap(true, SeqCst) || (attempts == 2 && !cfg!(fixed)) {
                return slot;
            }
        }
    }

    #[inline(never)]
    fn fill(&self, slot: &Slot, value: usize) {
        // SAFETY: see above.
        unsafe { *slot.record.get() = (value, value) };
    }

    #[inline(never)]
    fn check(&self, slot: &Slot) {
        // SAFETY: see above.
        let (one, other) = unsafe { *slot.record.get() };
        assert_eq!(one, other, "two halves of two records");
    }
}

fn main() {
    let ring = Arc::new(Ring::default());
    let writer = |number: usize| {
        let ring = ring.clone();
        thread::spawn(move || {
            for round in 0..2 {
                let slot = ring.reserve();
                ring.fill(slot, 10 * number + round);
                ring.check(slot);
                slot.busy.store(false, SeqCst);
            }
        })
    };
    for thread in [writer(1), writer(2), writer(3)] {
        thread.join().unwrap();
    }
}
