//! The schedule as it happens: runs of steps, thread by thread.
//!
//! An entry is a thread and how many choices in a row fell on it. The memory may be shared with the driver, so that
//! the record survives the death of the process at any instruction: the open entry is counted in place.

use std::sync::atomic::{AtomicU64, Ordering};

use waylay_control_protocol::Stretch;
use waylay_schedule::{EventKind, ThreadId};

/// Where stretches are written. Full means that the rest is counted and lost.
#[derive(Debug)]
pub struct Recording {
    stretches: *mut Stretch,
    capacity: usize,
    /// Number of stretches, the open one included, and where the driver reads it.
    len: usize,
    published: *const AtomicU64,
    /// The open stretch; null before the first and when there is no room for it.
    open: *mut Stretch,
    lost: bool,
}

impl Recording {
    /// Records into `capacity` entries at `stretches` and keeps their number in `published`.
    ///
    /// # Safety
    /// The memory is writable for as long as the recording is used, and nobody else writes it.
    pub unsafe fn into(stretches: *mut Stretch, capacity: usize, published: *const AtomicU64) -> Self {
        Self { stretches, capacity, len: 0, published, open: core::ptr::null_mut(), lost: false }
    }

    /// Starts over.
    pub fn clear(&mut self) {
        self.len = 0;
        self.open = core::ptr::null_mut();
        self.lost = false;
        self.publish();
    }

    fn publish(&self) {
        // SAFETY: valid for as long as the recording, by the promise of `into`.
        unsafe { (*self.published).store(self.len as u64, Ordering::Relaxed) };
    }

    /// Notes that `thread` was chosen again.
    #[inline]
    pub fn again(&mut self, thread: ThreadId, first: EventKind) {
        if !self.open.is_null() {
            // SAFETY: one of the entries that are ours to write.
            unsafe { (*self.open).steps += 1 };
        } else if !self.lost {
            self.begin(thread, first);
        }
    }

    /// Notes that `thread` was chosen after another, to do `first`.
    pub fn begin(&mut self, thread: ThreadId, first: EventKind) {
        if self.len == self.capacity {
            self.open = core::ptr::null_mut();
            self.lost = true;
            return;
        }
        // SAFETY: `len < capacity`.
        unsafe {
            self.open = self.stretches.add(self.len);
            self.open.write(Stretch { thread: thread.0, first: u32::from(first.code()), steps: 1 });
        }
        self.len += 1;
        self.publish();
    }

    /// Whether the open stretch is this thread's.
    pub fn is_of(&self, thread: ThreadId) -> bool {
        // SAFETY: one of the entries that are ours.
        !self.open.is_null() && unsafe { (*self.open).thread == thread.0 }
    }

    /// Whether choices were lost because the memory was full.
    pub fn lost(&self) -> bool {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_count_choices_and_say_when_they_are_full() {
        let stretch =
            |thread, first: EventKind, steps| Stretch { thread, first: u32::from(first.code()), steps };
        let mut memory = vec![stretch(0, EventKind::Yield, 0); 2];
        let count = AtomicU64::new(0);
        // SAFETY: vector and count outlive the recording and are not written meanwhile.
        let mut recording = unsafe { Recording::into(memory.as_mut_ptr(), memory.len(), &raw const count) };
        recording.again(ThreadId(0), EventKind::ThreadStart);
        recording.again(ThreadId(0), EventKind::Yield);
        recording.begin(ThreadId(3), EventKind::MutexLock);
        recording.again(ThreadId(3), EventKind::MutexUnlock);
        assert!(!recording.lost());
        recording.begin(ThreadId(0), EventKind::Yield);
        assert!(recording.lost());
        assert_eq!(count.load(Ordering::Relaxed), 2);
        assert_eq!(memory, [stretch(0, EventKind::ThreadStart, 2), stretch(3, EventKind::MutexLock, 2)]);
    }
}
