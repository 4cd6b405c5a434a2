//! An access of the running thread becomes a step, or does not.
//!
//! Called by the thread that is about to make the access, outside of everything the library does on its own account:
//! there, and in threads that are not under control, the identity is null and nothing happens.

use core::cell::UnsafeCell;
use core::sync::atomic::Ordering;

use waylay_schedule::{Event, EventKind};

use super::modules::Modules;
use super::patch;
use super::sharing::Sharing;
use super::spin::Looks;
use crate::me::{Unmanaged, me};
use crate::runtime::{Logical, runtime, step};
use crate::sched::ByAddress;

/// An access that a compiler or a patched instruction reports.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) kind: EventKind,
    pub(super) address: usize,
    pub(super) bytes: usize,
    /// The instruction, or one close to it: tells places apart.
    pub(super) code: usize,
}

/// What is known about the run's accesses; the holder of the token owns it.
#[derive(Default)]
struct Watch {
    looks: Looks,
    sharing: Sharing,
    modules: Modules,
    /// Plain accesses are looked at to learn which are shared.
    profiling: bool,
    /// Plain accesses from elsewhere are no steps.
    chosen: Option<ByAddress<usize, ()>>,
}

struct Slot(UnsafeCell<Option<Watch>>);

// SAFETY: only the holder of the token looks inside.
unsafe impl Sync for Slot {}

static WATCH: Slot = Slot(UnsafeCell::new(None));

/// # Safety
/// The caller holds the token, and no borrow of the result lives across a handover.
unsafe fn watch() -> *mut Watch {
    // SAFETY: by the caller's promise.
    unsafe { (*WATCH.0.get()).get_or_insert_default() }
}

/// Prepares for a run: takes over which accesses are steps.
///
/// # Safety
/// The runtime is installed, and the caller is the only thread that takes part so far.
pub(crate) unsafe fn begin_run() {
    // SAFETY: by the caller's promise.
    unsafe {
        let watch = &mut *watch();
        let region = &(*runtime()).region;
        patch::report(region.report());
        watch.looks = Looks::default();
        watch.sharing.clear();
        watch.profiling = region.settings().profile != 0;
        watch.chosen = region.chosen().map(|sites| {
            sites.iter().filter_map(|&site| Some((watch.modules.code(site)?, ()))).collect()
        });
    }
}

/// An atomic operation, or a volatile access: always a step.
#[inline]
pub(super) fn atomic(access: Access) {
    let me = me();
    if !me.is_null() {
        // SAFETY: a logical thread that runs program code holds the token.
        unsafe { controlled_atomic(me, access) };
    }
}

/// A plain access: a step if it is worth one.
#[inline]
pub(super) fn plain(access: Access) {
    let me = me();
    if !me.is_null() {
        // SAFETY: a logical thread that runs program code holds the token.
        unsafe { controlled_plain(me, access) };
    }
}

/// An access that reads and then writes, in one instruction that others can come in between on a real machine: two steps.
/// What was read is put back before the instruction is executed as a whole, so that it writes what it would have written.
#[inline]
pub(super) fn read_write(access: Access) {
    let me = me();
    if !me.is_null() {
        // SAFETY: a logical thread that runs program code holds the token.
        unsafe { controlled_read_write(me, access) };
    }
}

/// The program says that it waits for others.
pub(super) fn pause() {
    let me = me();
    if !me.is_null() {
        let _inside = Unmanaged::enter();
        // SAFETY: a logical thread that runs program code holds the token.
        unsafe { step(me, Event::local(EventKind::Yield)) };
    }
}

unsafe fn controlled_read_write(me: *mut Logical, access: Access) {
    let _inside = Unmanaged::enter();
    // SAFETY: by the caller's promise; the program is about to access the memory itself.
    unsafe {
        if !is_step(me, access) {
            return;
        }
        if !matches!(access.bytes, 1 | 2 | 4 | 8) {
            return announce(me, access);
        }
        announce(me, Access { kind: EventKind::PlainRead, ..access });
        let read = read_word(access.address, access.bytes);
        let switches = (*runtime()).sched.switches;
        announce(me, access);
        if (*runtime()).sched.switches != switches {
            let bytes = read.to_le_bytes();
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), access.address as *mut u8, access.bytes);
        }
    }
}

unsafe fn controlled_atomic(me: *mut Logical, access: Access) {
    let _inside = Unmanaged::enter();
    // SAFETY: by the caller's promise.
    unsafe {
        // A plain access may be in conflict with an atomic one.
        if (*watch()).profiling && access.bytes > 0 && (*runtime()).sched.live() > 1 {
            learn(me, &mut *watch(), access);
        }
        announce(me, access);
    }
}

unsafe fn controlled_plain(me: *mut Logical, access: Access) {
    let _inside = Unmanaged::enter();
    // SAFETY: by the caller's promise.
    unsafe {
        if is_step(me, access) {
            announce(me, access);
        } else if waits(access) {
            step(me, Event::local(EventKind::Yield));
        }
    }
}

/// Whether a plain access is worth a step.
unsafe fn is_step(me: *mut Logical, access: Access) -> bool {
    // SAFETY: called with the token.
    unsafe {
        // Alone, there is nobody to share with and nothing to choose.
        if (*runtime()).sched.live() < 2 {
            return false;
        }
        let watch = &mut *watch();
        if watch.profiling {
            (*runtime()).region.report().accesses.fetch_add(1, Ordering::Relaxed);
            learn(me, watch, access);
        }
        // What is learned now counts from the next run on: this one has to be repeatable from its settings.
        watch.chosen.as_ref().is_none_or(|chosen| chosen.contains_key(&access.code))
    }
}

unsafe fn learn(me: *mut Logical, watch: &mut Watch, access: Access) {
    let writes = !matches!(access.kind, EventKind::PlainRead | EventKind::AtomicLoad);
    let Watch { sharing, modules, .. } = watch;
    // SAFETY: called with the token.
    unsafe {
        let region = &(*runtime()).region;
        sharing.note((*me).id, access.code, (access.address, access.bytes), writes, |code| {
            if let Some(site) = modules.site(code) {
                region.add_conflicting(site);
            }
        });
    }
}

unsafe fn announce(me: *mut Logical, access: Access) {
    // SAFETY: called with the token; the memory is read only if the same place accessed it before.
    unsafe {
        if waits(access) {
            step(me, Event::local(EventKind::Yield));
        }
        let extent = access.bytes.min(u32::MAX as usize) as u32;
        step(me, Event::access(access.kind, access.address as u64, extent));
    }
}

/// Whether the running thread waits for another to change what it looks at.
unsafe fn waits(access: Access) -> bool {
    // SAFETY: called with the token; the memory is read only if the same place accessed it before.
    unsafe {
        let switches = (*runtime()).sched.switches;
        let value = || read_word(access.address, access.bytes);
        (*watch()).looks.visit(switches, access.code, access.address, value)
    }
}

/// What lies at an address, as far as a word tells.
unsafe fn read_word(address: usize, bytes: usize) -> u64 {
    let mut word = [0u8; 8];
    for (place, byte) in word.iter_mut().enumerate().take(bytes) {
        // SAFETY: the program accessed these bytes a moment ago.
        *byte = unsafe { ((address + place) as *const u8).read_volatile() };
    }
    u64::from_le_bytes(word)
}
