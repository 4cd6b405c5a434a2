//! What is known about the run's accesses, in this process: where it is kept, and what it is told.

use waylay_accesses::{Attention, Frees, Module, Process, Watch, Who, access, follows_objects};
use waylay_control_protocol::{RegionMap, Report, Statement};
use waylay_runtime::Slot;
use waylay_schedule::Event;
use waylay_scheduler::Scheduler;

use crate::runtime::{Logical, Token, end_at_race, runtime, step};
use crate::{interpose, patch};

/// This process, for whoever looks at its accesses.
#[derive(Default)]
pub(crate) struct Windows;

impl Process for Windows {
    type Thread = *mut Logical;
    const ONE_HEAP: bool = true;

    unsafe fn watch() -> *mut Watch<Windows> {
        // SAFETY: by the caller's promise.
        unsafe { watch() }
    }

    #[inline]
    unsafe fn scheduler() -> *mut Scheduler {
        // SAFETY: by the caller's promise.
        unsafe { &raw mut (*runtime()).sched }
    }

    #[inline]
    unsafe fn region() -> *const RegionMap {
        // SAFETY: by the caller's promise.
        unsafe { &raw const (*runtime()).region }
    }

    #[inline]
    unsafe fn who(thread: *mut Logical) -> Who {
        // SAFETY: by the caller's promise. Nothing interrupts a thread here to run code of the program's.
        Who::itself(unsafe { (*thread).id })
    }

    #[inline]
    unsafe fn step(thread: *mut Logical, event: Event) {
        // SAFETY: by the caller's promise.
        step(unsafe { Token::held_by(thread) }, event);
    }

    #[inline]
    unsafe fn progressed() {
        // SAFETY: by the caller's promise.
        unsafe { (*runtime()).progressed() };
    }

    unsafe fn registers(saved: usize) -> Option<[usize; 7]> {
        // SAFETY: by the caller's promise.
        Some(unsafe { patch::program_registers(saved) })
    }

    unsafe fn end_at_race(race: Option<(Statement<'static>, [usize; 2])>) -> ! {
        // SAFETY: by the caller's promise.
        end_at_race(unsafe { Token::of_the_run() }, race)
    }

    fn modules() -> Vec<Module> {
        interpose::changed_modules().iter().filter_map(|&base| patch::extent_of(base)).collect()
    }

    fn turn(attention: Attention<'_>, more: bool, _: bool) {
        patch::turn(attention, more, 0);
    }

    fn turn_new(first: usize, attention: Attention<'_>, _: bool) {
        patch::turn(attention, true, first);
    }

    fn forget_hits() {
        patch::forget_hits();
    }

    fn look(site: u32, most: u32) -> bool {
        patch::look(site, most)
    }

    fn dismiss(site: u32) {
        patch::dismiss(site);
    }

    fn report(_: &Report) {
        patch::report();
    }
}

static WATCH: Slot<Watch<Windows>> = Slot::new();

/// # Safety
/// The caller holds the token, and no borrow of the result lives across a handover.
unsafe fn watch() -> *mut Watch<Windows> {
    // SAFETY: by the caller's promise.
    unsafe { WATCH.get_or_default() }
}

/// Prepares for a run.
pub(crate) fn begin_run(me: &mut Token) {
    let (run, watch) = me.run_and_watch();
    watch.begin_run(&run.region);
}

/// A thread is about to be created: from now on accesses can meet.
pub(crate) fn before_spawn(me: &mut Token) {
    let (run, watch) = me.run_and_watch();
    watch.before_spawn(run.sched.live(), &run.region);
}

/// Libraries were loaded in the middle of a run: the patched modules from this number on.
pub(crate) fn modules_loaded(me: &mut Token, first: usize) {
    let (run, watch) = me.run_and_watch();
    watch.attend_to_new(&run.region, first);
}

/// What orders the threads of a run, and which memory they are given: what `waylay_runtime::edge` knows, and what only Windows
/// has.
pub(crate) mod edge {
    use waylay_runtime::edge::with;
    pub(crate) use waylay_runtime::edge::{
        ended, follows, gives, hands_over, locked, outsider, outsiders_took_part, spawned, takes, takes_over,
        unlocked,
    };

    use super::*;

    /// `me` saw that a thread has ended. `again`: somebody had seen it before.
    ///
    /// # Safety
    /// The other lives as long as the run.
    #[inline]
    pub(crate) unsafe fn joined(me: &mut Token, ended: *mut Logical, again: bool) {
        // SAFETY: by the caller's promise.
        unsafe {
            match again {
                false => waylay_runtime::edge::joined(me, ended),
                true => with(me, |watch, me| watch.includes(me, Windows::who(ended))),
            }
        }
    }

    /// Code at `caller` was given memory, on behalf of `me`.
    #[cold]
    pub(crate) fn allocated(me: &mut Token, start: usize, bytes: usize, caller: usize) {
        let id = me.id();
        me.watch().allocated(start, bytes, caller, id);
    }

    /// `me` may be about to give memory back, which is an address and a length.
    #[cold]
    pub(crate) fn before_free(me: &mut Token, block: (usize, usize), caller: usize) {
        // SAFETY: the thread has the token.
        unsafe { access::before_free::<Windows>(me.thread(), caller, block, Frees::MayBeSteps) };
    }

    /// `me` gives memory back.
    #[cold]
    pub(crate) fn freed(me: &mut Token, block: (usize, usize), caller: usize) {
        // SAFETY: the thread has the token.
        unsafe { access::free::<Windows>(me.thread(), caller, block, Frees::MayBeSteps) };
    }

    /// The length of a block that was allocated in this run.
    pub(crate) fn length_of(me: &mut Token, start: usize) -> Option<usize> {
        me.watch().length_of(start)
    }

    /// A thread that begins has this stack: begin and end.
    pub(crate) fn given_stack(me: &mut Token, (start, end): (usize, usize)) {
        if follows_objects() {
            me.watch().given_stack(start, end - start);
        }
    }

    /// A block has another length now.
    #[cold]
    pub(crate) fn resized(me: &mut Token, start: usize, bytes: usize) {
        me.watch().resized(start, bytes);
    }
}
