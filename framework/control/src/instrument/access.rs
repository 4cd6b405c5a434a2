//! An access of the running thread becomes a step, or does not.
//!
//! Called by the thread that is about to make the access, outside of everything the library does on its own account:
//! there, and in threads that are not under control, the identity is null and nothing happens.

use waylay_schedule::{Event, EventKind};

use super::races::Deed;
use super::verdict;
use super::watch::{Watch, actor, watch};
use crate::me::{Unmanaged, me};
use crate::runtime::{Logical, runtime, step};

/// An access that a compiler or a patched instruction reports.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) kind: EventKind,
    pub(super) address: usize,
    pub(super) bytes: usize,
    /// The instruction, or one close to it: tells places apart.
    pub(super) code: usize,
    /// The number of the patched site, if it is one.
    pub(super) site: Option<u32>,
    /// Where the registers of the thread are saved; 0: they are not. An odd number: by the kernel, at a breakpoint.
    pub(super) saved: usize,
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

/// An access of a runtime that orders threads by it: no step, but what comes before it comes before what others do after.
#[inline]
pub(super) fn ordering(access: Access) {
    let me = me();
    if !me.is_null() {
        let _inside = Unmanaged::enter();
        let reads = access.kind != EventKind::AtomicStore;
        let writes = access.kind != EventKind::AtomicLoad;
        // SAFETY: a logical thread that runs program code holds the token.
        unsafe { compare(me, access, (reads, writes, true)) };
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
        announce_read_write(me, access);
        compare(me, access, (true, true, false));
    }
}

unsafe fn announce_read_write(me: *mut Logical, access: Access) {
    // SAFETY: called with the token; the program is about to access the memory itself.
    unsafe {
        if !is_candidate(me, access) {
            return;
        }
        let waits = waits(access);
        if !is_step(access, waits) {
            return;
        }
        if !matches!(access.bytes, 1 | 2 | 4 | 8) {
            return announce(me, access, waits);
        }
        announce(me, Access { kind: EventKind::PlainRead, ..access }, waits);
        let read = read_word(access.address, access.bytes);
        let switches = (*runtime()).sched.switches;
        announce(me, access, false);
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
        if (*watch()).learns((*runtime()).sched.live()) && access.bytes > 0 {
            learn(me, access, true);
        }
        // Who only writes looks at nothing.
        announce(me, access, access.kind != EventKind::AtomicStore && waits(access));
        if access.bytes > 0 {
            let reads = access.kind != EventKind::AtomicStore;
            let writes = access.kind != EventKind::AtomicLoad;
            compare(me, access, (reads, writes, true));
        }
    }
}

unsafe fn controlled_plain(me: *mut Logical, access: Access) {
    let _inside = Unmanaged::enter();
    // SAFETY: by the caller's promise.
    unsafe {
        let candidate = is_candidate(me, access);
        let waits = access.kind == EventKind::PlainRead && waits(access);
        if candidate && is_step(access, waits) {
            announce(me, access, waits);
        } else if waits {
            step(me, Event::local(EventKind::Yield));
        }
        let writes = access.kind == EventKind::PlainWrite;
        compare(me, access, (!writes, writes, false));
    }
}

/// Compares an access with those of others. After the step: whoever was let run before it is made comes before it.
#[inline]
unsafe fn compare(me: *mut Logical, access: Access, (reads, writes, atomic): (bool, bool, bool)) {
    // SAFETY: called with the token.
    unsafe {
        let watch: &mut Watch = &mut *watch();
        if !watch.races((*runtime()).sched.live()) {
            return;
        }
        let Access { address, bytes, code, site, .. } = access;
        let thread = (*me).id;
        let deed = Deed { thread, code, address, bytes, reads, writes, atomic, compiled: site.is_none() };
        if let Some((race, last)) = watch.compare(deed, &(*runtime()).region) {
            verdict::end(watch, race, last, access.saved);
        }
    }
}

/// Whether a plain access is at a place that is worth a step.
unsafe fn is_candidate(me: *mut Logical, access: Access) -> bool {
    // SAFETY: called with the token.
    unsafe {
        if let Some(site) = access.site {
            (*watch()).looked_at(site, access.code);
        }
        let live = (*runtime()).sched.live();
        let learns = (*watch()).learns(live);
        if learns || (*watch()).races(live) {
            (*watch()).count_access(access.saved & 1 != 0, &(*runtime()).region);
        }
        if learns {
            learn(me, access, false);
        }
        // Alone, there is nothing to choose. What is learned now counts from the next run on: this one has to be repeatable
        // from its settings.
        live > 1 && (*watch()).is_chosen(access.code, access.address, (*me).id)
    }
}

/// Whether one more access at a place that is worth a step is one.
unsafe fn is_step(access: Access, waits: bool) -> bool {
    // SAFETY: called with the token. A thread that waits is preempted however often it looks.
    unsafe { waits || (*watch()).has_steps_left(access.code, access.site, &(*runtime()).region) }
}

unsafe fn learn(me: *mut Logical, access: Access, atomic: bool) {
    // SAFETY: called with the token.
    unsafe {
        let watch: &mut Watch = &mut *watch();
        watch.learn(actor(me), &access, atomic, &(*runtime()).region);
    }
}

unsafe fn announce(me: *mut Logical, access: Access, waits: bool) {
    // SAFETY: called with the token.
    unsafe {
        if waits {
            step(me, Event::local(EventKind::Yield));
        }
        if !matches!(access.kind, EventKind::PlainRead | EventKind::AtomicLoad | EventKind::Fence) {
            let value = || read_word(access.address, access.bytes);
            if (*watch()).found.is_news(access.code, access.address, value) {
                (*runtime()).limits.progressed((*runtime()).sched.steps);
            }
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

/// A library was loaded in the middle of a run.
///
/// # Safety
/// The caller holds the token.
pub(super) unsafe fn modules_loaded(first_new: usize) {
    // SAFETY: by the caller's promise.
    unsafe { (*watch()).attend_to_new(&(*runtime()).region, first_new) };
}
