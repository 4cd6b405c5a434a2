//! What is known about the sites of each module, and where moved instructions came from.
//!
//! What is told of a module does not change once it is told, and is never taken back: threads read it at any time, in the
//! handler of exceptions, too. A library that is unloaded and comes back to the same place finds its own.

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use waylay_patch::What;

use super::memory::with_code_open;

/// Bytes that take the place of a window.
pub(super) const DETOUR: usize = 6;

/// Modules in the life of a process, and sites in one: together the number of a site.
const MODULES: usize = 1 << 11;
const SITES: u32 = 20;
/// Sites in one.
pub(super) const MOST_SITES: usize = 1 << SITES;

/// A site.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The instruction, where the program's file has it.
    pub(super) code: usize,
    /// Where the program is, for whoever walks the stack: as if a call had been made there.
    pub(super) walk: usize,
    pub(super) what: What,
    /// Bytes of the instruction.
    pub(super) length: u8,
    /// Bytes that it accesses.
    pub(super) bytes: u16,
    /// It is done as often as a register says.
    pub(super) repeats: bool,
    /// It synchronises or is in a loop that waits: a step also where plain accesses are none.
    pub(super) always: bool,
    /// It is replaced by a breakpoint.
    pub(super) trapped: bool,
    /// The address is relative to the thread's own block.
    pub(super) thread_local: bool,
}

/// A piece of code that was replaced.
#[derive(Clone, Copy, Debug)]
pub(super) struct Replaced {
    pub(super) at: usize,
    /// Bytes of all instructions that were moved.
    pub(super) covers: usize,
    /// Bytes that were written.
    pub(super) length: usize,
    pub(super) ours: [u8; DETOUR],
    pub(super) original: [u8; DETOUR],
}

/// A module, or its plain accesses.
#[derive(Debug)]
pub(super) struct Patched {
    pub(super) base: usize,
    pub(super) identity: [u8; 16],
    /// These are plain accesses of it, which are replaced only while they matter.
    pub(super) accesses: bool,
    /// Its code: begin and end.
    pub(super) code: Vec<(usize, usize)>,
    /// Where its trampolines are: begin and end.
    pub(super) memory: (usize, usize),
    pub(super) entries: Vec<Entry>,
    /// Address of a moved instruction, and its own, by the first.
    pub(super) moved: Vec<(usize, usize)>,
    /// Address of a breakpoint, and of what is done instead, by the first.
    pub(super) traps: Vec<(usize, usize)>,
    /// By address.
    pub(super) replaced: Vec<Replaced>,
    /// Sites that are replaced, and that are not.
    pub(super) sites_patched: u32,
    pub(super) sites_refused: AtomicU32,
}

static ALL: [AtomicPtr<Patched>; MODULES] = [const { AtomicPtr::new(core::ptr::null_mut()) }; MODULES];
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn all() -> impl Iterator<Item = &'static Patched> {
    let count = COUNT.load(Ordering::Acquire);
    // SAFETY: what is told is never taken back.
    ALL[..count].iter().filter_map(|module| unsafe { module.load(Ordering::Acquire).as_ref() })
}

/// The number of the first site of the next module; none when there is no room for another.
pub(super) fn first_site() -> Option<u32> {
    let count = COUNT.load(Ordering::Relaxed);
    (count < MODULES).then_some((count as u32) << SITES)
}

/// Tells of the next module. Called with the lock of the patches.
pub(super) fn publish(module: Patched) -> &'static Patched {
    let count = COUNT.load(Ordering::Relaxed);
    let module: &'static mut Patched = Box::leak(Box::new(module));
    let told = &raw mut *module;
    ALL[count].store(told, Ordering::Release);
    COUNT.store(count + 1, Ordering::Release);
    module
}

/// What was told of a module that was at this place before.
pub(super) fn find(base: usize, identity: [u8; 16]) -> Option<&'static Patched> {
    all().find(|module| !module.accesses && module.base == base && module.identity == identity)
}

/// The site with this number.
pub(super) fn entry(site: u32) -> Option<&'static Entry> {
    let module = ALL.get((site >> SITES) as usize)?.load(Ordering::Acquire);
    // SAFETY: what is told is never taken back.
    unsafe { module.as_ref() }?.entries.get((site & ((1 << SITES) - 1)) as usize)
}

/// Whether a thread at this address has executed one instruction of two that lead to our code: if they were put back, it would be in
/// the middle of another.
pub(super) fn is_on_the_way(at: usize) -> bool {
    all().any(|module| {
        let place = module.replaced.binary_search_by_key(&at.wrapping_sub(1), |piece| piece.at);
        place.is_ok_and(|place| module.replaced[place].length == DETOUR)
    })
}

/// Where a thread goes on that came to one of our breakpoints.
pub(super) fn trap(at: usize) -> Option<usize> {
    all().find_map(|module| look_up(&module.traps, at))
}

/// Where an instruction that was moved to this address came from.
pub(super) fn origin(at: usize) -> Option<(&'static Patched, usize)> {
    let module = all().find(|module| (module.memory.0..module.memory.1).contains(&at))?;
    look_up(&module.moved, at).map(|origin| (module, origin))
}

fn look_up(list: &[(usize, usize)], at: usize) -> Option<usize> {
    let place = list.binary_search_by_key(&at, |&(key, _)| key).ok()?;
    Some(list[place].1)
}

impl Patched {
    /// Whether the module is the one that was patched: a library that was loaded again is as its file has it.
    pub(super) fn is_in_place(&self) -> bool {
        self.replaced.first().is_none_or(|first| {
            // SAFETY: called for a module that is loaded at this place; at least as many bytes of code are there.
            let there = unsafe { core::slice::from_raw_parts(first.at as *const u8, first.length) };
            there == &first.ours[..first.length]
        })
    }

    /// Where the piece that begins at an address is in the list.
    pub(super) fn piece_at(&self, at: usize) -> Option<usize> {
        self.replaced.binary_search_by_key(&at, |piece| piece.at).ok()
    }

    /// Replaces the code; false when that is not allowed everywhere.
    ///
    /// # Safety
    /// The module is loaded at this place, and no thread is in the middle of it.
    pub(super) unsafe fn put_in_place(&self) -> bool {
        self.code.iter().all(|&(start, end)| {
            let inside = self.replaced.iter().filter(|piece| (start..end).contains(&piece.at));
            let mut inside = inside.peekable();
            let write = |piece: &Replaced| {
                // SAFETY: as many bytes of code are there, which are open.
                unsafe { (piece.at as *mut u8).copy_from_nonoverlapping(piece.ours.as_ptr(), piece.length) };
            };
            // SAFETY: by the caller's promise.
            inside.peek().is_none() || unsafe { with_code_open((start, end), || inside.for_each(write)) }
        })
    }

    /// Puts the module's own code back around an address; false when it is not replaced there.
    pub(super) fn put_back(&self, at: usize) -> bool {
        // The last that begins at or before the address: windows do not overlap.
        let place = self.replaced.partition_point(|piece| piece.at <= at);
        let Some(piece) = place.checked_sub(1).map(|place| &self.replaced[place]) else { return false };
        let write = || {
            // SAFETY: as many bytes of code are there, which are open.
            unsafe { (piece.at as *mut u8).copy_from_nonoverlapping(piece.original.as_ptr(), piece.length) };
        };
        let place = (piece.at, piece.at + piece.length);
        // SAFETY: a thread executed an instruction of this piece, so its module is loaded, and nobody is inside the bytes.
        at - piece.at < piece.covers && unsafe { with_code_open(place, write) }
    }
}
