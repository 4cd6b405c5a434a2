//! Memory of the library's own.
//!
//! The scheduler works between two instructions of the program, possibly inside the program's allocator, so it may
//! not allocate from the program's heap: that would change the program's addresses, recurse through interposed
//! calls, and count as a leak. This allocator maps its own chunks and never gives them back; blocks are rounded up
//! to powers of two and kept in one free list per size.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::sys;

/// Smallest block: 16 bytes, the strictest alignment that Rust collections ask for without saying so.
const SMALLEST: u32 = 4;
/// From this size (1 MiB) on, blocks are mapped and unmapped one by one.
const LARGEST: u32 = 20;
const CHUNK: usize = 1 << LARGEST;

/// The allocator. A zeroed one is ready for use.
pub(crate) struct Arena {
    locked: AtomicBool,
    inner: UnsafeCell<Inner>,
}

struct Inner {
    free: [*mut FreeBlock; LARGEST as usize],
    next: *mut u8,
    left: usize,
}

struct FreeBlock {
    next: *mut FreeBlock,
}

// SAFETY: `inner` is only touched while `locked` is held.
unsafe impl Sync for Arena {}

impl Arena {
    pub(crate) const fn new() -> Self {
        let inner =
            Inner { free: [core::ptr::null_mut(); LARGEST as usize], next: core::ptr::null_mut(), left: 0 };
        Self { locked: AtomicBool::new(false), inner: UnsafeCell::new(inner) }
    }

    fn with<R>(&self, work: impl FnOnce(&mut Inner) -> R) -> R {
        while self.locked.swap(true, Ordering::Acquire) {
            sys::yield_now();
        }
        // SAFETY: the flag was false, so nobody else is inside.
        let result = work(unsafe { &mut *self.inner.get() });
        self.locked.store(false, Ordering::Release);
        result
    }
}

impl Inner {
    fn take(&mut self, class: u32) -> *mut u8 {
        let head = self.free[class as usize];
        if !head.is_null() {
            // SAFETY: blocks in the list were given back whole and at least hold a `FreeBlock`.
            self.free[class as usize] = unsafe { (*head).next };
            return head.cast();
        }
        let size = 1usize << class;
        // Chunks are page-aligned and cut into powers of two; aligning the cut keeps every block naturally aligned.
        let skip = self.next.align_offset(size);
        if self.left < size.saturating_add(skip) {
            let Some(chunk) = sys::map(CHUNK) else { return core::ptr::null_mut() };
            (self.next, self.left) = (chunk, CHUNK);
            return self.take(class);
        }
        let block = self.next.wrapping_add(skip);
        self.next = block.wrapping_add(size);
        self.left -= size + skip;
        block
    }
}

fn class_of(layout: &Layout) -> u32 {
    let size = layout.size().max(layout.align()).max(1 << SMALLEST);
    size.next_power_of_two().trailing_zeros()
}

// SAFETY: blocks of a class are disjoint, at least as large as asked and aligned to their (power of two) size up to
// a page; larger requests are mappings, which are page-aligned.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let class = class_of(&layout);
        if class >= LARGEST || layout.align() > 4096 {
            return sys::map(layout.size().max(layout.align())).unwrap_or(core::ptr::null_mut());
        }
        self.with(|inner| inner.take(class))
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let class = class_of(&layout);
        if class >= LARGEST || layout.align() > 4096 {
            // SAFETY: such a block is a mapping of its own, and the caller gives it up.
            return unsafe { sys::unmap(block, layout.size().max(layout.align())) };
        }
        let block = block.cast::<FreeBlock>();
        self.with(|inner| {
            // SAFETY: the caller gives the block up, and it is large enough for a `FreeBlock`.
            unsafe { (*block).next = inner.free[class as usize] };
            inner.free[class as usize] = block;
        });
    }
}
