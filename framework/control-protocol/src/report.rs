//! What the library says of a run, and of all runs of a process together.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::coded::coded;
use crate::delayed::DelayedReport;
use crate::race::RaceReport;

/// Depths that [`Tally`] tells apart; what aims deeper counts as the last.
pub const DEPTHS: usize = 16;

coded! {
    /// How a run ended, as far as the library knows.
    Ending {
        /// It has not: still running, or killed before the library could say more.
        Unfinished = 0,
        /// The program exited by itself.
        Exited = 1,
        /// No thread could ever run again.
        Deadlock = 2,
        /// The step limit was reached, although things went on changing.
        StepLimit = 3,
        /// The settings could not be carried out.
        Refused = 4,
        /// Two accesses met that nothing orders, or the access was reached at which the run was to end.
        Race = 5,
        /// So many steps in a row changed nothing that nothing ever will.
        Livelock = 6,
        /// Nobody under control could run for a while, and what is not under control might still change that.
        Awaiting = 7,
    }
}

coded! {
    /// Where a process that was to be held is held, as far as the library has to say it. (On Linux a tracer sees it.)
    HeldAt {
        /// At the end that it was about to come to; the value is its exit status.
        Exit = 1,
        /// At an exception that nobody handles; the value is the address of its `EXCEPTION_POINTERS`.
        Exception = 2,
    }
}

/// Places that are named of those that made more steps than a run gives to one.
pub const LIMITED: usize = 8;

/// Threads of a run whose numbers in the system are told: far more than small tests have.
pub const NUMBERED: usize = 64;

/// What became of a run. Written by the library as the run goes on.
#[repr(C)]
#[derive(Debug)]
pub struct Report {
    /// A code of [`Ending`].
    pub ending: AtomicU32,
    /// Threads that took part, the main thread included.
    pub threads: AtomicU32,
    /// Choices made.
    pub steps: AtomicU64,
    /// Those that may count in another schedule, for strategies whose promise depends on their number; 0 for others.
    pub reach: AtomicU64,
    /// Choices that changed the running thread.
    pub switches: AtomicU64,
    /// Stretches recorded.
    pub stretches: AtomicU64,
    /// Virtual nanoseconds that passed.
    pub virtual_ns: AtomicU64,
    /// One more than the step at which the run left the schedule it was to follow; 0 when it did not.
    pub diverged: AtomicU64,
    /// Steps that threads were made to take because they took none by themselves.
    pub forced: AtomicU64,
    /// 1 when the record of the schedule is incomplete because it was too long.
    pub cut: AtomicU32,
    /// 1 when something outside the library's control took part: equal seeds may differ.
    pub partly_controlled: AtomicU32,
    /// 1 while nobody under control can run and something that is not under control is awaited.
    pub awaits: AtomicU32,
    /// A code of [`Switching`](crate::Switching): how threads were switched in fact. Baton stands in for carrier where the machine
    /// cannot do that; the schedules are the same.
    pub switching: AtomicU32,
    /// Sentences of the conversation that were said; more than [`NOTES`](crate::region::NOTES) of them are counted and lost.
    pub notes: AtomicU64,
    /// Bytes of what the run told about itself.
    pub account: AtomicU32,
    /// Calls in which a thread had to leave the scheduler.
    pub excursions: AtomicU32,
    /// Bytes of what the process hands over to the next one.
    pub handed: AtomicU32,
    /// Code sites found to access memory that threads share; more than fit are counted and lost.
    pub conflicting: AtomicU32,
    /// Sites of unmodified code that are steps, and that could not be made steps.
    pub patched: AtomicU32,
    /// See `patched`.
    pub refused: AtomicU32,
    /// Some of the latter, by their [`Site`](crate::Site); 0: none.
    pub refused_sites: [AtomicU64; LIMITED],
    /// Address and length of the list of instructions that were moved: pairs of where they are and where they were.
    pub moved: AtomicU64,
    /// See `moved`.
    pub moved_count: AtomicU64,
    /// Plain accesses of runs in which it is looked which are shared: each would be a step if all were.
    pub accesses: AtomicU64,
    /// Code sites that made so many steps that their later accesses were none.
    pub limited: AtomicU32,
    /// Some of them, by their [`Site`](crate::Site); 0: none. Kept from run to run of one process.
    pub limited_sites: [AtomicU64; LIMITED],
    /// Not 0: a run that was looked at touched more memory than is remembered, or came by some code so often that its later
    /// accesses were not looked at.
    pub overlooked: AtomicU32,
    /// Some of that code. Kept from run to run of one process.
    pub overlooked_sites: [AtomicU64; LIMITED],
    /// Libraries of the system that were loaded by name, as the [`Site`](crate::Site) of their first byte; 0: none. Kept from run
    /// to run of one process.
    pub loaded: [AtomicU64; LIMITED],
    /// Patched places that a run was the first to come by, and that was not looked at.
    pub reached: AtomicU32,
    /// Not 0: more memory was touched than races are looked for in, and no more were from there on.
    pub races_over: AtomicU32,
    /// Not 0: more calls that synchronise nothing were made than are steps.
    pub calls_over: AtomicU32,
    /// The race that ended the run, if one did.
    pub race: RaceReport,
    /// Stores that waited in a store buffer while others read.
    pub delayed: DelayedReport,
    /// A code of [`HeldAt`], 0 while the process is not held; set last.
    pub held: AtomicU32,
    /// The system's number of the thread that came to that point.
    pub held_thread: AtomicU32,
    /// See [`HeldAt`].
    pub held_value: AtomicU64,
    /// Where no tracer sees threads begin, what the system calls those of the run, each at its own number; 0: not told.
    pub numbers: [AtomicU32; NUMBERED],
    /// Of all runs in the process.
    pub tally: Tally,
}

/// Sums over the runs of one process. Kept while they go on, so that they survive the death of the process.
#[repr(C)]
#[derive(Debug)]
pub struct Tally {
    /// Runs that began.
    pub runs: AtomicU64,
    /// Steps of the runs that ended.
    pub steps: AtomicU64,
    /// The most steps of a run that ended.
    pub longest: AtomicU64,
    /// The greatest k that a run was planned with that promises something by depth.
    pub reach: AtomicU64,
    /// Runs that ended and in which something outside the library's control took part.
    pub partly_controlled: AtomicU64,
    /// One more than the number of the first run; 0 when none began, or the library does not say.
    pub first: AtomicU64,
    /// How often the first run was made without counting.
    pub repeats: AtomicU64,
    /// Runs in which it was looked which accesses conflict.
    pub looked_at: AtomicU64,
    /// The most plain accesses of such a run.
    pub accesses: AtomicU64,
    /// The most code sites of a run that made so many steps that their later accesses were none.
    pub limited: AtomicU64,
    /// Orders of conflicting places in the code that runs showed, those that are possible, the runs that were listened to for
    /// that, one more than the number of the last that showed a new one, and 1 when there is no further run because none came.
    pub orders: [AtomicU64; 5],
    /// Runs by the depth that they promise something for, since `reach` last grew; the others are at 0.
    pub aimed: [AtomicU64; DEPTHS],
    /// The most threads of a run that ended, and of their timers where a strategy tells them apart.
    pub threads: AtomicU32,
    /// Threads that the last run left behind; the process can make no further run then.
    pub left: AtomicU32,
}

impl Report {
    /// Names a place whose later accesses are no steps, as far as there is room.
    pub fn add_limited(&self, site: u64) {
        self.limited.fetch_add(1, Ordering::Relaxed);
        add(&self.limited_sites, site);
    }

    /// Names code whose later accesses are not looked at in a run that is, as far as there is room.
    pub fn add_overlooked(&self, site: u64) {
        self.overlooked.store(1, Ordering::Relaxed);
        add(&self.overlooked_sites, site);
    }

    /// Names an instruction that cannot be made a step, as far as there is room.
    pub fn add_refused(&self, site: u64) {
        add(&self.refused_sites, site);
    }

    /// Names a library of the system that was loaded by name, as far as there is room.
    pub fn add_loaded(&self, site: u64) {
        add(&self.loaded, site);
    }

    /// What was named by [`Report::add_loaded`].
    pub fn loaded_libraries(&self) -> Vec<u64> {
        all_of(&self.loaded)
    }

    /// The places that were named by [`Report::add_refused`].
    pub fn refused_places(&self) -> Vec<u64> {
        all_of(&self.refused_sites)
    }

    /// The places that were named by [`Report::add_limited`].
    pub fn limited_places(&self) -> Vec<u64> {
        all_of(&self.limited_sites)
    }

    /// The places that were named by [`Report::add_overlooked`].
    pub fn overlooked_places(&self) -> Vec<u64> {
        all_of(&self.overlooked_sites)
    }
}

fn add(list: &[AtomicU64], site: u64) {
    for place in list {
        match place.load(Ordering::Relaxed) {
            0 => return place.store(site, Ordering::Relaxed),
            known if known == site => return,
            _ => {}
        }
    }
}

fn all_of(list: &[AtomicU64]) -> Vec<u64> {
    list.iter().map(|place| place.load(Ordering::Relaxed)).take_while(|&site| site != 0).collect()
}

impl Tally {
    pub(crate) fn words(&self) -> impl Iterator<Item = &AtomicU64> {
        let numbers = [&self.runs, &self.steps, &self.longest, &self.reach, &self.partly_controlled];
        let learning = [&self.looked_at, &self.accesses, &self.limited];
        numbers
            .into_iter()
            .chain([&self.first, &self.repeats])
            .chain(learning)
            .chain(&self.orders)
            .chain(&self.aimed)
    }
}
