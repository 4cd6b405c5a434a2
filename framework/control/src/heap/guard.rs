//! Makes wrong uses of freed memory visible in strict mode, without a sanitizer.
//!
//! While it is on, `free` fills a block with a pattern and keeps it back ([`quarantine`](super::quarantine)), and
//! `realloc` moves what it enlarges. Freeing twice ends the process at the second time; writing to a freed block ends it
//! when the block is looked at next, which is at the next switch of threads in most programs; reading gives the pattern.
//!
//! Only blocks that glibc took from the program's heap are kept: with another allocator, a sanitizer's for one, the guard
//! stays off. Large blocks are mappings of their own that vanish when they are freed, which is as good.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use waylay_control_protocol::account::Misuse;

use super::next;
use super::quarantine::{Freed, Quarantine};
use crate::message::complain;
use crate::runtime::Whereabouts;
use crate::sys;

/// What freed memory is filled with: an odd negative number in every width, and not an address.
pub(super) const PATTERN: u64 = 0xdbdb_dbdb_dbdb_dbdb;
/// Blocks looked at when threads switch; small programs have no more.
const LOOKED_AT: usize = 16;
/// Longer blocks are not kept: filling them would cost more than they tell.
const LONGEST: usize = 64 * 1024;
/// glibc's chunks are this aligned, and the word before one has its size and three flags, of which these two say that
/// the chunk is a mapping of its own or belongs to another arena.
const ALIGNMENT: usize = 16;
const FLAGS: usize = 0b111;
const ELSEWHERE: usize = 0b110;

static ON: AtomicBool = AtomicBool::new(false);
/// The program's heap, which only grows upwards.
static LOW: AtomicUsize = AtomicUsize::new(usize::MAX);
static HIGH: AtomicUsize = AtomicUsize::new(0);
static BLOCKS: Blocks = Blocks { taken: AtomicBool::new(false), all: UnsafeCell::new(Quarantine::EMPTY) };

struct Blocks {
    taken: AtomicBool,
    all: UnsafeCell<Quarantine>,
}

// SAFETY: the quarantine is only touched while `taken` is held.
unsafe impl Sync for Blocks {}

impl Blocks {
    /// Nothing when somebody is inside, who may be interrupted by the caller: then the caller goes without.
    fn with<R>(&self, work: impl FnOnce(&mut Quarantine) -> R) -> Option<R> {
        if self.taken.swap(true, Ordering::Acquire) {
            return None;
        }
        // SAFETY: the flag was false, so nobody else is inside.
        let result = work(unsafe { &mut *self.all.get() });
        self.taken.store(false, Ordering::Release);
        Some(result)
    }
}

/// Finds the heap and keeps glibc from making a second one. Called once, before `main`, while there is one thread.
pub(crate) fn prepare() {
    if !next::is_glibc() {
        return;
    }
    // SAFETY: plain calls; one thread at a time runs in strict mode, so one arena is enough.
    let low = unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
        next::free(next::malloc(1));
        heap_start()
    };
    if let Some(low) = low {
        LOW.store(low, Ordering::Relaxed);
    }
}

/// From now on freed blocks are kept back, if [`prepare`] found the heap.
pub(crate) fn switch_on() {
    ON.store(LOW.load(Ordering::Relaxed) != usize::MAX, Ordering::Relaxed);
}

/// Whether blocks are kept back.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

fn heap_start() -> Option<usize> {
    // The 47th field of all, the 45th behind the name in parentheses.
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let start: usize = stat.rsplit(')').next()?.split_whitespace().nth(44)?.parse().ok()?;
    (start != 0 && start < heap_end()).then_some(start)
}

fn heap_end() -> usize {
    // SAFETY: asks only.
    unsafe { sys::call(libc::SYS_brk, [0; 6]) as usize }
}

fn is_in_heap(at: usize) -> bool {
    if at < LOW.load(Ordering::Relaxed) {
        return false;
    }
    if at >= HIGH.load(Ordering::Relaxed) {
        HIGH.store(heap_end(), Ordering::Relaxed);
    }
    at < HIGH.load(Ordering::Relaxed)
}

/// The bytes of the block at `at` that the program may use, if it is one that can be kept.
unsafe fn length(at: usize) -> Option<usize> {
    if !at.is_multiple_of(ALIGNMENT) || !is_in_heap(at) {
        return None;
    }
    // SAFETY: inside the heap, behind its first word.
    let header = unsafe { *((at - 8) as *const usize) };
    let len = (header & !FLAGS).wrapping_sub(8);
    if header & ELSEWHERE != 0 || !(24..=LONGEST).contains(&len) || !is_in_heap(at + len) {
        return None;
    }
    // SAFETY: inside the heap. The next chunk's header says whether this one is in use.
    let in_use = unsafe { *((at + len) as *const usize) } & 1 != 0;
    in_use.then_some(len)
}

/// Frees a block, now or later; `by` says who does it and when.
///
/// # Safety
/// As for `free`; this is the only place through which the program frees while the guard is on.
pub(super) unsafe fn free(pointer: *mut c_void, by: Whereabouts) {
    let at = pointer as usize;
    // SAFETY: null, or a block of the allocator by the caller's promise, or a mistake of the program's that is checked
    // for here as far as possible and left to glibc otherwise.
    unsafe {
        let Some(len) = length(at) else { return next::free(pointer) };
        if *pointer.cast::<u64>() == PATTERN
            && let Some(Some(before)) = BLOCKS.with(|all| all.find(at))
        {
            complain(Misuse::FreedTwice(before.len as u64, before.by.actor(), by.actor()));
        }
        let kept = BLOCKS.with(|all| {
            while let Some(oldest) = all.make_room(len) {
                check(&oldest);
                next::free(oldest.at as *mut c_void);
            }
            let words = core::slice::from_raw_parts_mut(at as *mut u64, len / 8);
            words.fill(PATTERN);
            all.add(Freed { at, len: len & !7, by });
        });
        if kept.is_none() {
            next::free(pointer);
        }
    }
}

/// Whether `realloc` has to move the block so that its old place is kept back; its old length.
///
/// # Safety
/// As for `realloc`.
pub(super) unsafe fn moves(pointer: *mut c_void, size: usize) -> Option<usize> {
    // SAFETY: by the caller's promise.
    unsafe { length(pointer as usize) }.filter(|&len| size > len)
}

/// Looks at some of the blocks: for the moment at which threads switch.
#[cold]
pub(crate) fn look() {
    // SAFETY: blocks in the quarantine are readable until it gives them back.
    BLOCKS.with(|all| all.some(LOOKED_AT).for_each(|freed| unsafe { check(&freed) }));
}

/// Looks at all blocks: for the end of a run.
pub(crate) fn look_at_all() {
    if is_on() {
        BLOCKS.with(|all| {
            let count = all.len();
            // SAFETY: as in `look`.
            all.some(count).for_each(|freed| unsafe { check(&freed) });
        });
    }
}

/// # Safety
/// The block is in the quarantine, or was until now.
unsafe fn check(freed: &Freed) {
    // SAFETY: by the caller's promise.
    if let Some(offset) = unsafe { freed.broken_at() } {
        complain(Misuse::UsedAfter(offset as u64, freed.len as u64, freed.by.actor()));
    }
}
