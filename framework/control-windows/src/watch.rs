//! What is known about the run's accesses, in this process: where it is kept, and what it is told.

use waylay_accesses::{Attention, Frees, Module, Process, Watch, Who, access, follows_objects};
use waylay_control_protocol::{RegionMap, Report, Statement};
use waylay_runtime::Slot;
use waylay_schedule::{Event, ThreadId};
use waylay_scheduler::Scheduler;

use crate::runtime::{Logical, end_at_race, runtime, step};
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
        unsafe { step(thread, event) };
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
        unsafe { end_at_race::<Windows>(race) }
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
///
/// # Safety
/// The runtime is installed, and the caller is the only thread that takes part so far.
pub(crate) unsafe fn begin_run() {
    // SAFETY: by the caller's promise.
    unsafe { (*watch()).begin_run(&(*runtime()).region) };
}

/// A thread is about to be created: from now on accesses can meet.
///
/// # Safety
/// The caller holds the token and is inside the library.
pub(crate) unsafe fn before_spawn() {
    // SAFETY: by the caller's promise.
    unsafe { (*watch()).before_spawn((*runtime()).sched.live(), &(*runtime()).region) };
}

/// Libraries were loaded in the middle of a run: the patched modules from this number on.
///
/// # Safety
/// The caller holds the token.
pub(crate) unsafe fn modules_loaded(first: usize) {
    // SAFETY: by the caller's promise.
    unsafe { (*watch()).attend_to_new(&(*runtime()).region, first) };
}

/// What orders the threads of a run, and which memory they are given: what `waylay_runtime::edge` knows, and what only Windows
/// has. All of them are called by the running thread, which is inside the library.
pub(crate) mod edge {
    use waylay_runtime::edge::with;
    pub(crate) use waylay_runtime::edge::{
        ended, follows, gives, hands_over, locked, outsider, spawned, takes, takes_over, unlocked,
    };

    use super::*;

    /// `me` saw that a thread has ended. `again`: somebody had seen it before.
    #[inline]
    pub(crate) unsafe fn joined(me: *mut Logical, ended: *mut Logical, again: bool) {
        // SAFETY: both live as long as the run.
        unsafe {
            match again {
                false => waylay_runtime::edge::joined(me, ended),
                true => with::<Windows>(|watch| watch.includes(Windows::who(me), Windows::who(ended))),
            }
        }
    }

    /// Code at `caller` was given memory, on behalf of a thread.
    ///
    /// # Safety
    /// The thread executes the call, inside the library, and holds the token.
    #[cold]
    pub(crate) unsafe fn allocated(thread: ThreadId, start: usize, bytes: usize, caller: usize) {
        // SAFETY: by the caller's promise.
        unsafe { (*watch()).allocated(start, bytes, caller, thread) };
    }

    /// `me` may be about to give memory back, which is an address and a length.
    ///
    /// # Safety
    /// `me` executes the call, inside the library, and holds the token.
    #[cold]
    pub(crate) unsafe fn before_free(me: *mut Logical, block: (usize, usize), caller: usize) {
        // SAFETY: by the caller's promise.
        unsafe { access::before_free::<Windows>(me, caller, block, Frees::MayBeSteps) };
    }

    /// `me` gives memory back.
    ///
    /// # Safety
    /// As for [`before_free`].
    #[cold]
    pub(crate) unsafe fn freed(me: *mut Logical, block: (usize, usize), caller: usize) {
        // SAFETY: by the caller's promise.
        unsafe { access::free::<Windows>(me, caller, block, Frees::MayBeSteps) };
    }

    /// The length of a block that was allocated in this run.
    ///
    /// # Safety
    /// The caller holds the token.
    pub(crate) unsafe fn length_of(start: usize) -> Option<usize> {
        // SAFETY: by the caller's promise.
        unsafe { (*watch()).length_of(start) }
    }

    /// A thread that begins has this stack: begin and end.
    pub(crate) fn given_stack((start, end): (usize, usize)) {
        if follows_objects() {
            // SAFETY: the running thread has the token.
            unsafe { (*watch()).given_stack(start, end - start) };
        }
    }

    /// A block has another length now.
    ///
    /// # Safety
    /// As for [`allocated`].
    #[cold]
    pub(crate) unsafe fn resized(start: usize, bytes: usize) {
        // SAFETY: by the caller's promise.
        unsafe { (*watch()).resized(start, bytes) };
    }
}
