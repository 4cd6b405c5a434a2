//! What is known about each site, by its number, and where moved instructions came from.

use core::cell::UnsafeCell;

use waylay_accesses::Promise;
use waylay_patch::What;
use waylay_schedule::EventKind;

use super::{counter, kernel};
use super::stub::FROM_KERNEL;
use crate::instrument::access::{Access, atomic, ordering, pause, plain, read_write};

/// A window that can be taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) module: u16,
    pub(super) window: u32,
}

/// A site.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The instruction, where the program's file has it.
    pub(super) code: usize,
    pub(super) what: What,
    /// Bytes of the instruction.
    pub(super) length: u8,
    pub(super) bytes: u16,
    /// It is done as often as a register says.
    pub(super) repeats: bool,
    /// It synchronises or is in a loop that waits: a step also where plain accesses are none.
    pub(super) waiting: bool,
    /// A plain access that orders threads, and is nothing else.
    pub(super) orders: bool,
    /// The address is relative to the thread's own memory.
    pub(super) thread_local: bool,
    /// Where it is replaced, if that can be taken back.
    pub(super) place: Option<Place>,
}

#[derive(Default)]
struct Tables {
    entries: Vec<Entry>,
    /// How often each was looked at in this run; apart, because every run that is looked at writes here.
    hits: Vec<u32>,
    /// Address of a moved instruction, and its own, by the first.
    moved: Vec<[u64; 2]>,
    /// Some were added since they were put in order.
    unordered: bool,
}

struct Slot(UnsafeCell<Option<Tables>>);

// SAFETY: filled while modules are patched, by one thread at a time; read by the holder of the token otherwise.
unsafe impl Sync for Slot {}

static TABLES: Slot = Slot(UnsafeCell::new(None));

fn tables() -> &'static mut Tables {
    // SAFETY: see `Slot`; no reference is kept by those who call this.
    unsafe { (*TABLES.0.get()).get_or_insert_default() }
}

/// Adds a site; returns its number.
pub(super) fn add(entry: Entry) -> u32 {
    let entries = &mut tables().entries;
    entries.push(entry);
    entries.len() as u32 - 1
}

/// Counts a look at a site; says how many there were.
pub(super) fn hit(site: u32) -> (u32, Option<Place>) {
    let tables = tables();
    match tables.hits.get_mut(site as usize) {
        Some(hits) => {
            *hits += 1;
            (*hits, tables.entries[site as usize].place)
        }
        None => (0, None),
    }
}

/// Where a site is replaced, if that can be taken back.
pub(super) fn place(site: u32) -> Option<Place> {
    tables().entries.get(site as usize)?.place
}

/// No site has been looked at: a run begins.
pub(super) fn forget_hits() {
    let tables = tables();
    tables.hits.clear();
    tables.hits.resize(tables.entries.len(), 0);
}

/// Notes that an instruction was moved.
pub(super) fn add_moved(to: u64, from: u64) {
    let tables = tables();
    tables.moved.push([to, from]);
    tables.unordered = true;
}

/// Puts the list of moved instructions in order.
pub(super) fn publish() {
    let tables = tables();
    if core::mem::take(&mut tables.unordered) {
        tables.moved.sort_unstable();
    }
}

/// Where an instruction that was moved to this address came from.
pub(super) fn origin(at: usize) -> Option<usize> {
    let moved = &tables().moved;
    let place = moved.binary_search_by_key(&(at as u64), |[to, _]| *to).ok()?;
    Some(moved[place][1] as usize)
}

/// The list of moved instructions: address and length.
pub(super) fn moved() -> (usize, usize) {
    let moved = &tables().moved;
    (moved.as_ptr() as usize, moved.len())
}

/// The running thread is at a site. Called by the stubs, with every register saved. `count` and `source` are what RCX and
/// RSI hold: how often a string instruction is done, and where a copy reads. `saved` is where a stub saved registers, or where the
/// kernel did ([`FROM_KERNEL`]). In its first word a stub wants the address of the site, for those who look at the stack: one byte
/// further, as if the site had made a call.
///
/// Returns how many bytes of code have been done by this and are to be left out; a stub, which is called behind such an
/// instruction, has no use for that.
pub(super) extern "C" fn at_site(site: u32, address: usize, count: usize, source: usize, saved: usize) -> usize {
    let Some(&entry) = tables().entries.get(site as usize) else { return 0 };
    if saved & FROM_KERNEL == 0 {
        // SAFETY: a stub passes on the address of a word of its own that nothing else uses.
        unsafe { (saved as *mut usize).write(entry.code + 1) };
    }
    let address = if entry.thread_local { address.wrapping_add(thread_pointer()) } else { address };
    let mut bytes = usize::from(entry.bytes);
    if entry.repeats {
        bytes = bytes.saturating_mul(count);
        if bytes == 0 {
            return 0;
        }
    }
    let access = |kind| Access { kind, address, bytes, code: entry.code, site: Some(site), trapped: saved & FROM_KERNEL != 0, saved, promise: Promise::ALL, expects: None };
    match entry.what {
        What::Read if entry.orders => ordering(access(EventKind::AtomicLoad)),
        What::Write if entry.orders => ordering(access(EventKind::AtomicStore)),
        What::ReadWrite | What::Copy if entry.orders => ordering(access(EventKind::AtomicRmw)),
        What::Atomic => atomic(access(EventKind::AtomicRmw)),
        What::Fence => atomic(Access { bytes: 0, ..access(EventKind::Fence) }),
        What::Pause => pause(entry.code),
        What::Read if entry.waiting => atomic(access(EventKind::AtomicLoad)),
        What::Read => plain(access(EventKind::PlainRead)),
        What::Write => plain(access(EventKind::PlainWrite)),
        What::ReadWrite => read_write(access(EventKind::PlainWrite)),
        What::Copy => {
            plain(Access { address: source, ..access(EventKind::PlainRead) });
            plain(access(EventKind::PlainWrite));
        }
        What::Counter => {
            // RDTSCP, the longer of the two, names the processor as well.
            // SAFETY: the registers of this site, which has not been left.
            if unsafe { counter::show(saved, entry.length > 2) } {
                return usize::from(entry.length);
            }
        }
        What::Call => {
            // SAFETY: the registers of this site, which has not been left.
            if unsafe { kernel::call(saved) } {
                return usize::from(entry.length);
            }
        }
    }
    0
}

fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: the first words of the thread's control block hold its own address.
    unsafe { core::arch::asm!("mov {}, fs:0x10", out(reg) pointer, options(nostack, preserves_flags, readonly)) };
    pointer
}
