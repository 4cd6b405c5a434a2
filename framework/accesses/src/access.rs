//! An access of the running thread becomes a step, or does not.
//!
//! Called for the thread that is about to make the access, inside the library: what is done here is no step by itself.

use waylay_schedule::{Event, EventKind};
use waylay_scheduler::Now;

use crate::delayed;
use crate::order::Promise;
use crate::process::Process;
use crate::races::Deed;
use crate::verdict;
use crate::watch::Watch;

/// Accesses that take as long as one at a breakpoint.
const PRICE_OF_TRAP: u64 = 16;

/// An access that a compiler or a patched instruction reports.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// What it does.
    pub kind: EventKind,
    /// To what.
    pub address: usize,
    /// How many bytes.
    pub bytes: usize,
    /// The instruction, or one close to it: tells places apart.
    pub code: usize,
    /// The number of the patched site, if it is one.
    pub site: Option<u32>,
    /// It is patched with a breakpoint.
    pub trapped: bool,
    /// Where the registers of the thread are saved, in a way that the process knows; 0: they are not.
    pub saved: usize,
    /// What it promises about accesses around it, if it is atomic and a compiler says so.
    pub promise: Promise,
    /// It writes only if it finds what it expects.
    pub expects: Option<Expects>,
}

/// The condition of a compare-exchange.
#[derive(Clone, Copy, Debug)]
pub struct Expects {
    /// What has to be there, in at most eight bytes.
    pub value: u64,
    /// What the read promises that it is when something else is there.
    pub otherwise: Promise,
}

impl Access {
    /// One that a compiler reports.
    #[inline(always)]
    pub fn reported(kind: EventKind, address: usize, bytes: usize, code: usize) -> Access {
        Access {
            kind,
            address,
            bytes,
            code,
            site: None,
            trapped: false,
            saved: 0,
            promise: Promise::ALL,
            expects: None,
        }
    }
}

/// An access of a runtime that orders threads by it: no step, but what comes before it comes before what others do after.
///
/// # Safety
/// `me` executes the call, inside the library, and holds the token; the program is about to access the memory itself.
pub unsafe fn ordering<P: Process>(me: P::Thread, access: Access) {
    let reads = access.kind != EventKind::AtomicStore;
    let writes = access.kind != EventKind::AtomicLoad;
    // SAFETY: by the caller's promise.
    unsafe {
        compare_as::<P>(me, access, (reads, writes, true), true);
        if delayed::is_on() && writes {
            if reads { delayed::drain::<P>(me) } else { delayed::note::<P>(me, &access, false) }
        }
    };
}

/// An access that reads and then writes, in one instruction that others can come in between on a real machine: two steps.
/// What was read is put back before the instruction is executed as a whole, so that it writes what it would have written.
///
/// # Safety
/// As for [`ordering`].
pub unsafe fn read_write<P: Process>(me: P::Thread, access: Access) {
    // SAFETY: by the caller's promise; the program is about to access the memory itself.
    unsafe {
        if (*P::watch()).passes(&access, &*P::region()) {
            return;
        }
        let (candidate, learns) = is_candidate::<P>(me, access);
        let stepped = candidate && announce_read_write::<P>(me, access);
        if delayed::is_on() && !stepped {
            delayed::note::<P>(me, &access, false);
        }
        if learns {
            note_round::<P>(me, access);
            learn::<P>(me, access, false);
        }
        compare::<P>(me, access, (true, true, false));
    }
}

/// Says whether it was a step.
unsafe fn announce_read_write<P: Process>(me: P::Thread, access: Access) -> bool {
    // SAFETY: called with the token; the program is about to access the memory itself.
    unsafe {
        let waits = waits::<P>(access);
        if !is_step::<P>(access, waits) {
            return false;
        }
        if !matches!(access.bytes, 1 | 2 | 4 | 8) {
            announce::<P>(me, access, waits);
            if delayed::is_on() {
                delayed::note::<P>(me, &access, true);
            }
            return true;
        }
        announce::<P>(me, Access { kind: EventKind::PlainRead, ..access }, waits);
        let read = P::peek(access.address, access.bytes);
        let switches = (*P::scheduler()).switches;
        announce::<P>(me, access, false);
        if delayed::is_on() {
            // Before what was read is put back: that is nobody's store.
            delayed::note::<P>(me, &access, true);
        }
        if (*P::scheduler()).switches != switches {
            let bytes = read.to_le_bytes();
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), access.address as *mut u8, access.bytes);
        }
        true
    }
}

/// An atomic operation, or a volatile access: always a step.
///
/// # Safety
/// As for [`ordering`].
pub unsafe fn atomic<P: Process>(me: P::Thread, access: Access) {
    // SAFETY: by the caller's promise.
    unsafe {
        let learns = (*P::watch()).learns((*P::scheduler()).live());
        // Who only writes looks at nothing.
        if access.kind != EventKind::AtomicLoad || !looks_on::<P>(access) {
            announce::<P>(me, access, access.kind != EventKind::AtomicStore && waits::<P>(access));
        }
        if access.bytes > 0 {
            // A plain access may be in conflict with an atomic one.
            if learns {
                learn::<P>(me, access, true);
            }
            let reads = access.kind != EventKind::AtomicStore;
            let writes = access.kind != EventKind::AtomicLoad;
            compare::<P>(me, access, (reads, writes, true));
            if delayed::is_on() {
                match access.kind {
                    EventKind::AtomicLoad => delayed::reads::<P>(me, &access),
                    EventKind::AtomicStore => delayed::note::<P>(me, &access, (*P::scheduler()).live() > 1),
                    _ => delayed::drain::<P>(me),
                }
            }
        } else {
            // An instruction of the program's own.
            fence::<P>(me, Promise::ALL);
            if delayed::is_on() {
                delayed::drain::<P>(me);
            }
        }
    }
}

/// A fence that a compiler reports: no step, because nothing that others see changes by it.
///
/// # Safety
/// As for [`ordering`].
pub unsafe fn fence<P: Process>(me: P::Thread, promise: Promise) {
    // SAFETY: by the caller's promise.
    unsafe {
        let watch: &mut Watch<P> = &mut *P::watch();
        if watch.races((*P::scheduler()).live()) {
            watch.fences(P::who(me).id, promise);
        }
    }
}

/// A plain access: a step if it is worth one.
///
/// # Safety
/// As for [`ordering`].
pub unsafe fn plain<P: Process>(me: P::Thread, access: Access) {
    // SAFETY: by the caller's promise.
    unsafe {
        if (*P::watch()).passes(&access, &*P::region()) {
            return;
        }
        let (candidate, learns) = is_candidate::<P>(me, access);
        let waits = access.kind == EventKind::PlainRead && waits::<P>(access);
        if access.kind == EventKind::PlainWrite {
            let switches = (*P::scheduler()).switches;
            (*P::watch()).looks.writes(switches, access.code, access.address);
        }
        let mut stepped = false;
        if candidate && access.kind == EventKind::PlainRead && looks_on::<P>(access) {
            // Whoever is to run before it can run at the PAUSE.
        } else if candidate && is_step::<P>(access, waits) {
            announce::<P>(me, access, waits);
            stepped = true;
        } else if waits {
            P::step(me, Event::local(EventKind::Yield));
        }
        if learns {
            if waits {
                (*P::watch()).waits_at(access.code, &*P::region());
            }
            note_round::<P>(me, access);
            learn::<P>(me, access, false);
        }
        let writes = access.kind == EventKind::PlainWrite;
        compare::<P>(me, access, (!writes, writes, false));
        if delayed::is_on() {
            if writes {
                delayed::note::<P>(me, &access, stepped);
            } else if stepped {
                delayed::reads::<P>(me, &access);
            }
        }
    }
}

/// A function of the C library is about to read or write these ranges for code that calls it: a step, if one of them is worth
/// it. Says whether it was.
///
/// # Safety
/// As for [`ordering`].
pub unsafe fn before_copy<P: Process>(me: P::Thread, ranges: &[Access]) -> bool {
    // SAFETY: by the caller's promise.
    unsafe {
        let live = (*P::scheduler()).live();
        if live < 2 {
            return false;
        }
        let reads_only = ranges.iter().all(|range| range.kind == EventKind::PlainRead);
        let who = P::who(me).id;
        // What is written tells others more than what is read.
        let chosen = ranges
            .iter()
            .rev()
            .find(|range| (*P::watch()).is_chosen(range.code, range.address, who))
            .copied();
        let waits = reads_only && ranges.first().is_some_and(|&first| waits::<P>(first));
        match chosen {
            Some(range) if is_step::<P>(range, waits) => {
                announce::<P>(me, range, waits);
                true
            }
            _ if waits => {
                P::step(me, Event::local(EventKind::Yield));
                true
            }
            _ => false,
        }
    }
}

/// Code is about to call a function that returns memory which all threads have in common: a step, if that was seen to conflict.
///
/// # Safety
/// As for [`ordering`].
pub unsafe fn before_telling<P: Process>(me: P::Thread, code: usize) {
    // SAFETY: by the caller's promise.
    unsafe {
        if (*P::scheduler()).live() > 1 && (*P::watch()).is_place(code) {
            let access = Access::reported(EventKind::PlainWrite, 0, 0, code);
            if is_step::<P>(access, false) {
                P::step(me, Event::local(EventKind::Call).at(code));
            }
        }
    }
}

/// The function reads and writes these ranges now. `races`: it is to be seen whether something orders that.
///
/// # Safety
/// As for [`ordering`].
pub unsafe fn copy<P: Process>(me: P::Thread, ranges: &[Access], races: bool) {
    // SAFETY: by the caller's promise.
    unsafe {
        let live = (*P::scheduler()).live();
        let learns = (*P::watch()).learns(live);
        for &range in ranges {
            if learns || (*P::watch()).races(live) {
                (*P::watch()).count_copy(&range, &*P::region());
            }
            if learns {
                learn::<P>(me, range, false);
            }
            if races {
                let writes = range.kind == EventKind::PlainWrite;
                compare::<P>(me, range, (!writes, writes, false));
            }
        }
    }
}

/// Code at an address says that it waits for others: a step, but for rounds of a loop that are as the one before.
///
/// # Safety
/// As for [`ordering`].
pub unsafe fn pause<P: Process>(me: P::Thread, code: usize) {
    // SAFETY: by the caller's promise.
    unsafe {
        if (*P::watch()).spins.is_step(now::<P>(), code) {
            P::step(me, Event::local(EventKind::Yield));
            (*P::watch()).spins.paused(now::<P>());
        }
        (*P::watch()).gives_way(P::who(me));
    }
}

/// Where the run stands.
unsafe fn now<P: Process>() -> Now {
    // SAFETY: called with the token.
    let scheduler = unsafe { &*P::scheduler() };
    Now { switches: scheduler.switches, steps: scheduler.steps }
}

/// Whether a read is one more look of a loop that waits, and so no step.
unsafe fn looks_on<P: Process>(access: Access) -> bool {
    // SAFETY: called with the token; the memory is read only if the same place accessed it before.
    unsafe {
        let value = || P::peek(access.address, access.bytes);
        (*P::watch()).spins.looks(now::<P>(), access.code, access.address, value)
    }
}

/// Compares an access with those of others. After the step: whoever was let run before it is made comes before it.
#[inline]
unsafe fn compare<P: Process>(me: P::Thread, access: Access, how: (bool, bool, bool)) {
    // SAFETY: called with the token.
    unsafe { compare_as::<P>(me, access, how, false) };
}

/// Compares an access with those of others; `orders` when a runtime makes it.
#[inline]
unsafe fn compare_as<P: Process>(
    me: P::Thread,
    access: Access,
    (reads, writes, atomic): (bool, bool, bool),
    orders: bool,
) {
    // SAFETY: called with the token.
    unsafe {
        let watch: &mut Watch<P> = &mut *P::watch();
        if !watch.races((*P::scheduler()).live()) {
            return;
        }
        let Access { address, bytes, code, site, .. } = access;
        let thread = P::who(me).id;
        // Nobody runs before the operation itself: what is there now is what it will find.
        let fails = access.expects.filter(|expected| P::peek(address, bytes) != expected.value);
        let (writes, promise) = match fails {
            Some(expected) => (false, expected.otherwise),
            None => (writes, access.promise),
        };
        let deed = Deed {
            thread,
            code,
            address,
            bytes,
            reads,
            writes,
            atomic,
            // A load that waits, and what a runtime orders threads by, only count as atomic.
            certain: atomic && (site.is_none() || access.kind == EventKind::AtomicRmw && !orders),
            compiled: site.is_none(),
            frees: false,
            promise,
        };
        if let Some((race, last)) = watch.compare(deed, &*P::region()) {
            verdict::end(watch, race, last, access.saved);
        }
    }
}

/// What makes a free a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frees {
    /// It is one by itself.
    AreSteps,
    /// It is one where it was seen to conflict.
    MayBeSteps,
    /// None can be made here.
    AreNoSteps,
}

/// Memory may be given back by code at `code`: a step, if that was seen to conflict and is none by itself.
///
/// # Safety
/// As for [`ordering`].
pub unsafe fn before_free<P: Process>(
    me: P::Thread,
    code: usize,
    (start, bytes): (usize, usize),
    how: Frees,
) {
    // SAFETY: by the caller's promise.
    unsafe {
        let live = (*P::scheduler()).live();
        if how == Frees::MayBeSteps && live > 1 && (*P::watch()).is_seen_to_free(code, start, P::who(me).id) {
            let extent = bytes.min(u32::MAX as usize) as u32;
            P::step(me, Event::access(EventKind::Free, start as u64, extent).at(code));
        }
    }
}

/// Memory is given back by code at `code`, which is a write to all of it: now, or a moment ago if nobody ran since.
///
/// # Safety
/// As for [`ordering`].
pub unsafe fn free<P: Process>(me: P::Thread, code: usize, block: (usize, usize), how: Frees) {
    // SAFETY: by the caller's promise.
    unsafe {
        let live = (*P::scheduler()).live();
        let watch: &mut Watch<P> = &mut *P::watch();
        // What was asked for is less than what the allocator gave.
        let block = (block.0, watch.length_of(block.0).map_or(block.1, |asked| asked.min(block.1)));
        if watch.learns(live) {
            let code = (how == Frees::MayBeSteps).then_some(code);
            watch.learn_free(P::who(me), block, code, &*P::region());
        }
        if watch.races(live)
            && let Some((race, last)) = watch.compare(Deed::free(P::who(me).id, code, block), &*P::region())
        {
            verdict::end(watch, race, last, 0);
        }
    }
}

/// Whether a plain access is at a place that is worth a step, and whether it is to be learned from once it is made.
unsafe fn is_candidate<P: Process>(me: P::Thread, access: Access) -> (bool, bool) {
    // SAFETY: called with the token.
    unsafe {
        if let Some(site) = access.site {
            (*P::watch()).looked_at(site, access.code, P::who(me).id, &*P::region());
        }
        let live = (*P::scheduler()).live();
        let learns = (*P::watch()).learns(live);
        if learns || (*P::watch()).races(live) {
            (*P::watch()).count_access(if access.trapped { PRICE_OF_TRAP } else { 1 }, &*P::region());
        }
        // Alone, there is nothing to choose. What is learned now counts from the next run on: this one has to be repeatable
        // from its settings.
        (live > 1 && (*P::watch()).is_chosen(access.code, access.address, P::who(me).id), learns)
    }
}

/// Whether one more access at a place that is worth a step is one.
unsafe fn is_step<P: Process>(access: Access, waits: bool) -> bool {
    // SAFETY: called with the token. A thread that waits is preempted however often it looks.
    unsafe { waits || (*P::watch()).has_steps_left(access.code, access.site, &*P::region()) }
}

/// Learns from an access, after its step: whoever was let run before it is made comes before it, and what that one handed
/// over is taken over.
unsafe fn learn<P: Process>(me: P::Thread, access: Access, atomic: bool) {
    // SAFETY: called with the token.
    unsafe {
        let watch: &mut Watch<P> = &mut *P::watch();
        watch.learn(P::who(me).actor, &access, atomic, &*P::region());
    }
}

/// Takes in whether a thread waits for what it reads.
unsafe fn note_round<P: Process>(me: P::Thread, access: Access) {
    /// Bytes above this function's frame that are the thread's own: what a loop that waits keeps there.
    const FRAMES: usize = 1 << 14;
    let here = &raw const access as usize;
    let own = (here..here + FRAMES).contains(&access.address);
    // SAFETY: called with the token.
    unsafe { (*P::watch()).note_round(P::who(me).id, &access, own, &*P::region()) };
}

unsafe fn announce<P: Process>(me: P::Thread, access: Access, waits: bool) {
    // SAFETY: called with the token.
    unsafe {
        if waits {
            P::step(me, Event::local(EventKind::Yield));
        }
        if !matches!(access.kind, EventKind::PlainRead | EventKind::AtomicLoad | EventKind::Fence) {
            let value = || P::peek(access.address, access.bytes);
            if (*P::watch()).found.is_news(access.code, access.address, value) {
                P::progressed();
            }
        }
        let extent = access.bytes.min(u32::MAX as usize) as u32;
        P::step(me, Event::access(access.kind, access.address as u64, extent).at(access.code));
    }
}

/// Whether the running thread waits for another to change what it looks at.
unsafe fn waits<P: Process>(access: Access) -> bool {
    // SAFETY: called with the token; the memory is read only if the same place accessed it before.
    unsafe {
        let switches = (*P::scheduler()).switches;
        let value = || P::peek(access.address, access.bytes);
        let waits = (*P::watch()).looks.visit(switches, access.code, access.address, value);
        // Who says so by itself is left to that.
        waits && !(*P::watch()).spins.waits(now::<P>())
    }
}
