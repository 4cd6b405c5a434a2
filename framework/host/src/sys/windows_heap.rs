//! Windows: heap accounting inside the host. What libraries import of the system's heap comes here (`windows_calls`); a
//! sample of the allocations is entered with its call stack into the region that the driver reads
//! (`waylay_leaks::region`).
//!
//! All C libraries, and Rust, allocate with `HeapAlloc` in the end, so `malloc`, `new` and `Box` are seen alike. Not seen:
//! memory by `VirtualAlloc`, and modules that a test loads after its plugin was loaded.
//!
//! Inside an allocator nothing allocates, locks or waits. While a sample is taken the thread's countdown is at its
//! maximum, so that allocations meanwhile are not sampled.

use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use waylay_leaks::Tag;
use waylay_leaks::region::countdown::{Filter, NEVER, first_state, next_distance};
use waylay_leaks::region::shared::claim_inherited;
use waylay_leaks::region::{FRAMES, Region, Sample, monotonic_now, weight};
use windows_sys::Win32::Foundation::{GetLastError, HANDLE, SetLastError};
use windows_sys::Win32::System::Threading::{TLS_OUT_OF_INDEXES, TlsAlloc};

use super::windows::backtrace;
use super::windows_imports::{Replacement, addresses_of, extent_of, original, own_module};

type Allocate = unsafe extern "system" fn(HANDLE, u32, usize) -> *mut c_void;
type Reallocate = unsafe extern "system" fn(HANDLE, u32, *mut c_void, usize) -> *mut c_void;
type Free = unsafe extern "system" fn(HANDLE, u32, *mut c_void) -> u32;

static REGION: OnceLock<(&'static Region, u64, u64)> = OnceLock::new();
static SAMPLED: Filter = Filter::new();
static THREADS_SEEN: AtomicU64 = AtomicU64::new(0);
/// Where our own code lies, which is on every stack and says nothing.
static OWN_CODE: (AtomicUsize, AtomicUsize) = (AtomicUsize::new(0), AtomicUsize::new(0));

// ---- what a thread knows: bytes left, state of its draws, tag ----

/// Numbers of three slots that every thread has in its environment block, zero when it begins. Rust's own thread-locals
/// allocate on first use, and `TlsGetValue` forgets the last error, which a `free` must not.
static SLOTS: [AtomicUsize; 3] = [const { AtomicUsize::new(NO_SLOT) }; 3];
const NO_SLOT: usize = usize::MAX;
/// Slots that lie in the block itself, and where.
const SLOTS_IN_BLOCK: u32 = 64;
const FIRST_SLOT: usize = 0x1480;

const LEFT: usize = 0;
const STATE: usize = 1;
const TAG: usize = 2;

fn reserve_slots() -> bool {
    for slot in &SLOTS {
        // SAFETY: takes an index.
        let index = unsafe { TlsAlloc() };
        if index == TLS_OUT_OF_INDEXES || index >= SLOTS_IN_BLOCK {
            return false;
        }
        slot.store(FIRST_SLOT + index as usize * 8, Ordering::Release);
    }
    true
}

#[inline(always)]
fn get(slot: usize) -> u64 {
    let offset = SLOTS[slot].load(Ordering::Relaxed);
    if offset == NO_SLOT {
        return 0;
    }
    let value;
    // SAFETY: the slot was reserved, and lies in the block that this register points to on every thread.
    unsafe {
        std::arch::asm!("mov {}, gs:[{}]", out(reg) value, in(reg) offset, options(nostack, preserves_flags, readonly));
    }
    value
}

#[inline(always)]
fn set(slot: usize, value: u64) {
    let offset = SLOTS[slot].load(Ordering::Relaxed);
    if offset != NO_SLOT {
        // SAFETY: as in `get`; nobody else uses the slot.
        unsafe {
            std::arch::asm!("mov gs:[{}], {}", in(reg) offset, in(reg) value, options(nostack, preserves_flags))
        };
    }
}

// ---- tags ----

/// Charges what this thread allocates from now on to that tag; returns the tag before.
pub(crate) fn set_heap_tag(tag: u32) -> u32 {
    let before = get(TAG);
    set(TAG, u64::from(tag));
    before as u32
}

/// The tag that this thread's allocations are charged to.
pub(crate) fn heap_tag() -> u32 {
    get(TAG) as u32
}

// ---- the beginning ----

/// Gives every thread its slots, and takes the region that the driver announced, if it did. Returns what is to be replaced;
/// none when there are no slots, and then threads have no tags either.
pub(super) fn begin() -> Option<Vec<Replacement>> {
    if !reserve_slots() {
        return None;
    }
    let mut all = Vec::new();
    // SAFETY: the host was started by a driver, which announces regions that are its own.
    let Some((region, sampling)) = (unsafe { claim_inherited() }) else { return Some(all) };
    let (start, end) = extent_of(own_module()).unwrap_or_default();
    OWN_CODE.0.store(start, Ordering::Relaxed);
    OWN_CODE.1.store(end, Ordering::Relaxed);
    let seed = sampling.seed.unwrap_or_else(|| monotonic_now().as_nanos() as u64);
    REGION.get_or_init(|| (region, sampling.period, seed));
    let originals = [
        (addresses_of(&[c"HeapAlloc", c"RtlAllocateHeap"]), allocate as Allocate as usize, &ALLOCATE),
        (
            addresses_of(&[c"HeapReAlloc", c"RtlReAllocateHeap"]),
            reallocate as Reallocate as usize,
            &REALLOCATE,
        ),
        (addresses_of(&[c"HeapFree", c"RtlFreeHeap"]), free as Free as usize, &FREE),
    ];
    for (addresses, ours, place) in originals {
        // That of ntdll is the first: the others come down to it.
        place.store(*addresses.first()?, Ordering::Release);
        all.extend(addresses.into_iter().map(|original| Replacement { original, ours }));
    }
    Some(all)
}

static ALLOCATE: AtomicUsize = AtomicUsize::new(0);
static REALLOCATE: AtomicUsize = AtomicUsize::new(0);
static FREE: AtomicUsize = AtomicUsize::new(0);

// ---- what takes the place of the system's functions ----

/// Counts an allocation. False, with nothing counted, when a sample point lies within it.
#[inline(always)]
fn passes(size: usize) -> bool {
    match get(LEFT).checked_sub(size as u64) {
        Some(left) => {
            set(LEFT, left);
            true
        }
        None => false,
    }
}

unsafe extern "system" fn allocate(heap: HANDLE, flags: u32, size: usize) -> *mut c_void {
    let next = original!(ALLOCATE as Allocate);
    let due = !passes(size) && is_due(size);
    // SAFETY: the caller's.
    let pointer = unsafe { next(heap, flags, size) };
    if due && !pointer.is_null() {
        enter(pointer, size);
    }
    pointer
}

unsafe extern "system" fn free(heap: HANDLE, flags: u32, pointer: *mut c_void) -> u32 {
    if SAMPLED.may_hold(pointer.addr())
        && let Some((region, sample)) = take(pointer)
    {
        region.bury(&sample, now());
    }
    let next = original!(FREE as Free);
    // SAFETY: the caller's.
    let done = unsafe { next(heap, flags, pointer) };
    // ntdll answers with a byte, kernel32 with a word.
    u32::from(done as u8 != 0)
}

/// To the tables a death and a birth; one that failed is nothing at all.
unsafe extern "system" fn reallocate(
    heap: HANDLE,
    flags: u32,
    pointer: *mut c_void,
    size: usize,
) -> *mut c_void {
    let due = !passes(size) && is_due(size);
    let taken = if SAMPLED.may_hold(pointer.addr()) { take(pointer) } else { None };
    let next = original!(REALLOCATE as Reallocate);
    // SAFETY: the caller's.
    let moved = unsafe { next(heap, flags, pointer, size) };
    if let Some((region, sample)) = taken {
        if !moved.is_null() {
            region.bury(&sample, now());
        } else if region.restore(pointer.addr() as u64, &sample) {
            SAMPLED.add(pointer.addr());
        }
    }
    if due && !moved.is_null() {
        enter(moved, size);
    }
    moved
}

/// Whether an allocation that the thread could not spend is a sample.
#[cold]
fn is_due(size: usize) -> bool {
    let Some((_, period, seed)) = REGION.get() else {
        set(LEFT, NEVER);
        return false;
    };
    let mut state = get(STATE);
    if state == 0 {
        state = first_state(*seed, THREADS_SEEN.fetch_add(1, Ordering::Relaxed));
        set(LEFT, next_distance(&mut state, *period));
        set(STATE, state);
        if passes(size) {
            return false;
        }
    }
    set(LEFT, next_distance(&mut state, *period));
    set(STATE, state);
    true
}

#[cold]
fn enter(pointer: *mut c_void, size: usize) {
    let Some((region, period, _)) = REGION.get() else { return };
    let left = get(LEFT);
    set(LEFT, NEVER);
    // SAFETY: a number of this thread; looking for the stack may change it.
    let error = unsafe { GetLastError() };
    let mut buffer = [0; FRAMES + 8];
    let frames = without_own(backtrace(&mut buffer));
    // SAFETY: as above.
    unsafe { SetLastError(error) };
    let tag = Tag(heap_tag());
    let mut wide = [0; FRAMES + 1];
    let count = frames.len().min(wide.len());
    for (to, from) in wide.iter_mut().zip(frames) {
        *to = *from as u64;
    }
    let size = size as u64;
    let sample = Sample {
        birth: region.next_birth(),
        born: now(),
        size,
        weight: weight(size, *period),
        site: region.intern(tag, &wide[..count]),
        tag,
    };
    if region.enter(pointer.addr() as u64, &sample) {
        SAMPLED.add(pointer.addr());
    }
    set(LEFT, left);
}

/// Without the frames of this file, which are the innermost ones.
fn without_own(frames: &[usize]) -> &[usize] {
    let own = OWN_CODE.0.load(Ordering::Relaxed)..OWN_CODE.1.load(Ordering::Relaxed);
    match frames.iter().position(|frame| !own.contains(frame)) {
        Some(first) => &frames[first..],
        None => frames,
    }
}

fn take(pointer: *mut c_void) -> Option<(&'static Region, Sample)> {
    let (region, _, _) = REGION.get()?;
    let sample = region.take(pointer.addr() as u64)?;
    SAMPLED.remove(pointer.addr());
    Some((region, sample))
}

fn now() -> u64 {
    monotonic_now().as_nanos() as u64
}
