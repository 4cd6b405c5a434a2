//! What is asked of the process whose accesses are looked at: its threads, its modules, and the code that was replaced.

use waylay_control_protocol::{RegionMap, Report, Statement};
use waylay_schedule::{Event, ThreadId};
use waylay_scheduler::Scheduler;

use crate::modules::Module;
use crate::watch::Watch;

/// Which plain accesses are to be looked at.
#[derive(Clone, Copy, Debug)]
pub enum Attention<'a> {
    /// All.
    All,
    /// Those at these addresses, in order.
    These(&'a [usize]),
}

impl Attention<'_> {
    /// Whether code between two addresses has one of them.
    pub fn wants(self, (start, end): (usize, usize)) -> bool {
        match self {
            Attention::All => true,
            Attention::These(codes) => {
                let first = codes.partition_point(|&code| code < start);
                codes.get(first).is_some_and(|&code| code < end)
            }
        }
    }
}

/// A thread, by its two names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Who {
    /// In this run.
    pub id: ThreadId,
    /// For whoever looks ahead to other schedules: what interrupts a thread could come at any of its steps, so it has a
    /// number of its own there.
    pub actor: ThreadId,
}

impl Who {
    /// A thread that nothing interrupts right now.
    pub fn itself(id: ThreadId) -> Who {
        Who { id, actor: ThreadId(id.0 * 2) }
    }

    /// What interrupts it.
    pub fn interrupted(id: ThreadId) -> Who {
        Who { id, actor: ThreadId(id.0 * 2 + 1) }
    }

    /// The thread that an actor is, or is on.
    pub fn thread_of(actor: ThreadId) -> u32 {
        actor.0 / 2
    }
}

/// A control library.
pub trait Process: Default + Sized + 'static {
    /// A thread of the run.
    type Thread: Copy;

    /// Whether the heap gives one thread at once what another has freed. Then memory that is allocated again has no past for
    /// whoever learns which accesses meet; otherwise that costs some steps and hides nothing.
    const ONE_HEAP: bool;

    /// What is known about the run's accesses.
    ///
    /// # Safety
    /// The caller holds the token, and no borrow of the result lives across a handover.
    unsafe fn watch() -> *mut Watch<Self>;

    /// Who decides.
    ///
    /// # Safety
    /// As for [`Process::watch`], and a run goes on.
    unsafe fn scheduler() -> *mut Scheduler;

    /// The region of the run.
    ///
    /// # Safety
    /// As for [`Process::scheduler`].
    unsafe fn region() -> *const RegionMap;

    /// The names of a thread.
    ///
    /// # Safety
    /// The thread takes part in the run.
    unsafe fn who(thread: Self::Thread) -> Who;

    /// One step of the running thread: others may run.
    ///
    /// # Safety
    /// The thread executes the call and holds the token.
    unsafe fn step(thread: Self::Thread, event: Event);

    /// Where the stack of a thread ends, which is where its highest frame begins; stores below are its own affair.
    ///
    /// # Safety
    /// The thread takes part in the run.
    unsafe fn stack_end(_thread: Self::Thread) -> usize {
        usize::MAX
    }

    /// Whether memory can be read, at an address that code of the program is about to write to.
    fn is_readable(_address: usize) -> bool {
        true
    }

    /// What lies at an address, as far as a word tells. A program that handles faults may be about to make one: then anything,
    /// and its handler is not told before the access itself.
    ///
    /// # Safety
    /// The program accesses these bytes, at most 8, right after.
    unsafe fn peek(address: usize, bytes: usize) -> u64 {
        let mut word = [0u8; 8];
        for (place, byte) in word.iter_mut().enumerate().take(bytes) {
            // SAFETY: by the caller's promise.
            *byte = unsafe { ((address + place) as *const u8).read_volatile() };
        }
        u64::from_le_bytes(word)
    }

    /// Something has a number like a thread from now on that is none: it only makes stores visible.
    ///
    /// # Safety
    /// As for [`Process::scheduler`].
    unsafe fn flusher_made(_flusher: ThreadId) {}

    /// An access that is a step found news: the run goes on.
    ///
    /// # Safety
    /// As for [`Process::scheduler`].
    unsafe fn progressed();

    /// The registers by which a stack is walked, as they were at a patched site: RSP, RBP, RBX, R12 to R15. None where a stack
    /// can be walked without.
    ///
    /// # Safety
    /// `saved` is what an access came with that has not been made.
    unsafe fn registers(saved: usize) -> Option<[usize; 7]>;

    /// Ends the run at a race, told in a statement and with the two places in the code; or at the access at which it was to end.
    ///
    /// # Safety
    /// The caller holds the token and is inside the library.
    unsafe fn end_at_race(race: Option<(Statement<'static>, [usize; 2])>) -> !;

    /// Whether no thread can be in the program's code while the one that begins a run, or creates its first thread, is in the
    /// library: threads that are not under control may live from run to run.
    ///
    /// # Safety
    /// As for [`Process::watch`].
    unsafe fn is_alone() -> bool {
        true
    }

    /// The modules of the process.
    fn modules() -> Vec<Module>;

    /// Looks at these plain accesses of patched code and at no others. `more`: no thread can be in code that would be
    /// replaced; otherwise accesses are only dismissed. `stay_open`: some will be dismissed one by one.
    fn turn(attention: Attention<'_>, more: bool, stay_open: bool);

    /// Looks at these plain accesses in modules that were just loaded, from this number on.
    fn turn_new(first: usize, attention: Attention<'_>, stay_open: bool);

    /// Whether calls of functions that copy are to be told of: [`access::before_copy`](crate::access::before_copy). Where they
    /// cannot be, nothing happens.
    fn tell_of_copies(_wanted: bool) {}

    /// No site has been looked at so far.
    fn forget_hits();

    /// Counts a look at a site, and after `most` of them dismisses it. Says whether it did.
    fn look(site: u32, most: u32) -> bool;

    /// A thread came by a site in a run that is not looked at. Says whether the site lay in wait there for somebody to come by,
    /// where that is done, and nobody looks at it again before the next run that is.
    fn comes_by(_site: u32) -> bool {
        false
    }

    /// Does not look at a site again in this run.
    fn dismiss(site: u32);

    /// Says what was patched.
    fn report(report: &Report);
}
