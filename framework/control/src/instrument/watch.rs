//! What is known about the run's accesses, in this process: where it is kept, and what it is told.

use waylay_accesses::{Attention, Frees, Module, Process, Watch, Who, access, delayed, follows_order, is_in_want};
use waylay_control_protocol::{RegionMap, Report, Statement};
use waylay_runtime::Slot;
use waylay_schedule::{Event, ThreadId};

use super::copies;
use super::delay;
use super::modules;
use super::patch;
use super::peek;
use crate::runtime::{Logical, Token, end_at_race, is_prepared_in_process, outside, runtime, step};
use crate::sched::Scheduler;

/// This process, for whoever looks at its accesses.
#[derive(Default)]
pub(crate) struct Linux;

impl Process for Linux {
    type Thread = *mut Logical;
    const ONE_HEAP: bool = false;

    unsafe fn watch() -> *mut Watch<Linux> {
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
        // SAFETY: by the caller's promise.
        unsafe {
            let id = (*thread).id;
            if (*thread).handlers > 0 { Who::interrupted(id) } else { Who::itself(id) }
        }
    }

    #[inline]
    unsafe fn step(thread: *mut Logical, event: Event) {
        // SAFETY: by the caller's promise.
        step(unsafe { Token::held_by(thread) }, event);
    }

    #[inline]
    unsafe fn stack_end(thread: *mut Logical) -> usize {
        // SAFETY: by the caller's promise. libc's block for a thread lies at the end of its stack; above the main thread's
        // there is nothing.
        unsafe { if (*thread).id == ThreadId::MAIN { usize::MAX } else { (*thread).handle } }
    }

    fn is_readable(address: usize) -> bool {
        delay::is_readable(address)
    }

    #[inline]
    unsafe fn peek(address: usize, bytes: usize) -> u64 {
        // SAFETY: by the caller's promise.
        unsafe { peek::peek(address, bytes) }
    }

    unsafe fn flusher_made(flusher: ThreadId) {
        // SAFETY: by the caller's promise.
        unsafe { delay::flusher_made(flusher) };
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

    unsafe fn is_alone() -> bool {
        // SAFETY: by the caller's promise.
        !is_prepared_in_process() || !outside::are_there(unsafe { &*runtime() })
    }

    fn modules() -> Vec<Module> {
        modules::all()
    }

    fn turn(attention: Attention<'_>, more: bool, stay_open: bool) {
        patch::turn(attention, more, stay_open);
    }

    fn turn_new(first: usize, attention: Attention<'_>, stay_open: bool) {
        patch::turn_new(first, attention, stay_open);
    }

    fn tell_of_copies(wanted: bool) {
        copies::tell(wanted);
    }

    fn forget_hits() {
        patch::forget_hits();
    }

    fn look(site: u32, most: u32) -> bool {
        patch::look(site, most)
    }

    fn comes_by(site: u32) -> bool {
        patch::comes_by(site)
    }

    fn dismiss(site: u32) {
        patch::dismiss(site);
    }

    fn report(report: &Report) {
        patch::report(report);
    }
}

static WATCH: Slot<Watch<Linux>> = Slot::new();

/// # Safety
/// The caller holds the token, and no borrow of the result lives across a handover.
pub(super) unsafe fn watch() -> *mut Watch<Linux> {
    // SAFETY: by the caller's promise.
    unsafe { WATCH.get_or_default() }
}

/// Takes over which accesses are steps, ahead of a run: processes that are forked from this one have it done.
///
/// # Safety
/// No thread takes part in a run.
pub(crate) unsafe fn prepare(region: &RegionMap) {
    // SAFETY: by the caller's promise.
    unsafe { (*watch()).choose(region) };
    if region.settings().is_looked_at() {
        patch::get_ready();
    }
}

/// Prepares for a run.
pub(crate) fn begin_run(me: &mut Token) {
    let (run, watch) = me.run_and_watch();
    watch.begin_run(&run.region);
    if run.region.settings().debugged != 0 {
        patch::show_faults();
    }
}

/// A thread is about to be created: from now on accesses can meet.
pub(crate) fn before_spawn(me: &mut Token) {
    let (run, watch) = me.run_and_watch();
    watch.before_spawn(run.sched.live(), &run.region);
}

/// A thread goes on, for the first time or after others ran.
#[inline]
pub(crate) fn resumed(me: &mut Token) {
    // SAFETY: the thread has the token.
    unsafe { delayed::resumed(me.id()) };
    if is_in_want() {
        let id = me.id();
        let (run, watch) = me.run_and_watch();
        watch.resumed(id, &run.region);
    }
}

/// What orders the threads of a run, and which memory they are given: what `waylay_runtime::edge` knows, and what only Linux
/// has.
pub(crate) mod edge {
    use waylay_accesses::Way;
    use waylay_runtime::edge::with;
    pub(crate) use waylay_runtime::edge::{
        ended, follows, gives, hands_over, joined, outsider, takes, takes_over, unlocked,
    };

    use super::*;

    /// `me` created a thread, which blocks the signals that `me` blocks.
    ///
    /// # Safety
    /// The thread lives as long as the run.
    #[inline]
    pub(crate) unsafe fn spawned(me: &mut Token, child: *mut Logical) {
        // SAFETY: by the caller's promise.
        let (who, mask) = unsafe {
            waylay_runtime::edge::spawned(me, child);
            (Linux::who(child), (*child).mask)
        };
        blocks(me, (who, child), 0, mask);
    }

    /// What stands between a thread and the handler of a signal on it: blocked by the one, at work in the other. No lock of
    /// the program's is inside our own memory.
    fn gate(thread: *mut Logical, signal: u32) -> usize {
        const { assert!(size_of::<Logical>() > 65) }
        thread as usize + signal as usize
    }

    fn each(signals: u64, mut what: impl FnMut(u32)) {
        (1..=64).filter(|signal| signals & 1 << (signal - 1) != 0).for_each(&mut what);
    }

    /// `me` sends a signal to a thread: what it did so far comes before the handler.
    #[inline]
    pub(crate) fn signals(me: &mut Token, target: *mut Logical) {
        with(me, |watch, me| watch.hands_over(me, target as usize));
    }

    /// `me` blocks other signals than before.
    #[inline]
    pub(crate) fn masked(me: &mut Token, before: u64, after: u64) {
        let whom = (me.who(), me.thread());
        blocks(me, whom, before, after);
    }

    #[inline]
    fn blocks(me: &mut Token, (who, thread): (Who, *mut Logical), before: u64, after: u64) {
        if before != after && follows_order() {
            let (order, actor) = (me.watch().order_ahead(), who.actor);
            each(after & !before, |signal| order.locked(actor, gate(thread, signal), Way::Exclusive));
            each(before & !after, |signal| order.unlocked(actor, gate(thread, signal)));
        }
    }

    /// `me` is in the handlers of these signals from now on.
    #[inline]
    pub(crate) fn interrupted(me: &mut Token, signals: u64) {
        let place = me.thread() as usize;
        with(me, |watch, me| watch.takes_over(me, place));
        masked(me, 0, signals);
    }

    /// `me` is about to leave them.
    #[inline]
    pub(crate) fn goes_on(me: &mut Token, signals: u64) {
        masked(me, signals, 0);
    }

    /// What is handed over through descriptors: which of them are two ends of one is the kernel's knowledge.
    const TALK: usize = 8;

    /// `me` is about to write to a descriptor, or to close it.
    #[inline]
    pub(crate) fn talks(me: &mut Token) {
        if follows_order() {
            let id = me.id();
            me.watch().order_now().hand_over(id, TALK);
        }
    }

    /// `me` can read from a descriptor: it comes after all who wrote before, to whatever descriptor. That is more order than
    /// there is, so it does not count where other schedules are thought of.
    #[inline]
    pub(crate) fn listens(me: &mut Token) {
        if follows_order() {
            let id = me.id();
            me.watch().order_now().take_over(id, TALK);
        }
    }

    /// `me` is about to yield, or to sleep.
    #[inline]
    pub(crate) fn gives_way(me: &mut Token) {
        with(me, |watch, me| watch.gives_way(me));
    }

    /// Code at `caller` was given memory.
    #[cold]
    pub(crate) fn allocated(start: usize, bytes: usize, caller: usize) {
        with_blocks(|watch, me| watch.allocated(start, bytes, caller, me));
    }

    /// There is other memory at this address than before.
    #[cold]
    pub(crate) fn mapped(start: usize, bytes: usize) {
        with_blocks(|watch, _| watch.mapped(start, bytes));
    }

    /// A part of a file is at these addresses, which is shared with whoever maps it, too.
    #[cold]
    pub(crate) fn mapped_file(block: (usize, usize), file: (u64, u64), offset: u64) {
        with_blocks(|watch, _| watch.mapped_file(block, file, offset));
    }

    /// A block has another length now.
    #[cold]
    pub(crate) fn resized(start: usize, bytes: usize) {
        with_blocks(|watch, _| watch.resized(start, bytes));
    }

    /// Code at `caller` may be about to give memory back, which is an address and a length.
    #[cold]
    pub(crate) fn before_free(block: (usize, usize), caller: usize, how: Frees) {
        // SAFETY: the running thread has the token, and is inside the library.
        as_running_thread(|me| unsafe { access::before_free::<Linux>(me, caller, block, how) });
    }

    /// Code at `caller` gives memory back.
    #[cold]
    pub(crate) fn freed(block: (usize, usize), caller: usize, how: Frees) {
        // SAFETY: as above.
        as_running_thread(|me| unsafe { access::free::<Linux>(me, caller, block, how) });
    }

    fn as_running_thread(what: impl FnOnce(*mut Logical)) {
        let me = crate::me::me();
        if !me.is_null() {
            let _inside = crate::me::Unmanaged::enter();
            // SAFETY: every thread has an error number; what is called here leaves it alone when it succeeds.
            unsafe {
                let errno = *libc::__errno_location();
                what(me);
                *libc::__errno_location() = errno;
            }
        }
    }

    fn with_blocks(what: impl FnOnce(&mut Watch<Linux>, ThreadId)) {
        // SAFETY: a logical thread that runs program code has the token.
        as_running_thread(|me| unsafe { what(&mut *watch(), (*me).id) });
    }
}
