//! What the driver wants of a run.

use core::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::coded::coded;
use crate::in_process::Earlier;

coded! {
    /// How the library changes threads.
    Switching {
        /// It does not: threads run as they would without it.
        Free = 0,
        /// All threads are fibers on one kernel thread.
        Carrier = 1,
        /// Kernel threads on one processor hand a baton on.
        Baton = 2,
    }
}
coded! {
    /// When a wait with a deadline, or a sleep, may end by itself.
    Timeouts {
        /// Whenever the strategy chooses so.
        Choice = 0,
        /// Only when nothing else can run.
        Idle = 1,
    }
}
coded! {
    /// Where the program's clocks get their time from.
    ClockSource {
        /// Virtual time: equal runs see equal times.
        Virtual = 0,
        /// The real clocks.
        Real = 1,
    }
}
coded! {
    /// Where the program's random bytes come from.
    RandomSource {
        /// A stream made from the seed.
        Seeded = 0,
        /// The kernel.
        Real = 1,
    }
}
coded! {
    /// When a store is seen by others.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    Memory {
        /// At once: sequential consistency.
        #[default]
        Sc = 0,
        /// When it leaves the thread's store buffer, which the strategy chooses: x86-TSO.
        Tso = 1,
    }
}

impl Memory {
    /// Its name, as in options.
    pub fn name(self) -> &'static str {
        match self {
            Memory::Sc => "sc",
            Memory::Tso => "tso",
        }
    }

    /// Whether stores are seen at once.
    #[allow(clippy::trivially_copy_pass_by_ref)] // as serde asks
    pub fn is_sequential(&self) -> bool {
        *self == Memory::Sc
    }
}

impl FromStr for Memory {
    type Err = String;

    fn from_str(text: &str) -> Result<Memory, String> {
        let known = [Memory::Sc, Memory::Tso].into_iter().find(|memory| memory.name() == text);
        known.ok_or_else(|| format!("`{text}` is no memory model: sc or tso"))
    }
}

/// Of [`Settings::profile`]: it is looked which code sites access memory that threads share, from the memory level on.
pub const LOOKED_AT: u32 = 1;
/// Of [`Settings::profile`]: accesses to what is handed over are steps.
pub const HANDED_OVER: u32 = 2;

/// What the driver wants of a run. Written before the run begins, constant while it lasts.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// A code of [`Switching`].
    pub switching: u32,
    /// A code of [`Timeouts`].
    pub timeouts: u32,
    /// A code of [`ClockSource`].
    pub clock: u32,
    /// A code of [`RandomSource`].
    pub random: u32,
    /// Seed of the campaign.
    pub seed: u64,
    /// Number of the run.
    pub run: u64,
    /// The run is ended after this many steps; 0: never.
    pub max_steps: u64,
    /// 1: `main` runs free, and the host begins runs itself (see [`in_process`](crate::in_process)).
    pub in_process: u32,
    /// Milliseconds of processor time between two looks at a thread that computes without a step; 0: it may for ever.
    pub preempt_ms: u32,
    /// 1: the conversation with the strategy is kept, for a strategy on the driver's side to learn from.
    pub listen: u32,
    /// 1: calls that allocate, free, write or use files are steps too.
    pub calls: u32,
    /// 1: freed memory is kept back and filled with a pattern, so that its misuse shows.
    pub guard: u32,
    /// 1: the schedule to follow is a list of forced switches, everything else runs without preemption.
    pub(crate) guided: u32,
    /// Length of the parameters.
    pub(crate) parameters: u32,
    /// 1: a process that would be ended because of a deadlock or at the step limit waits to be killed, so that it can be
    /// looked at.
    pub hold: u32,
    /// Bits: [`LOOKED_AT`], [`HANDED_OVER`].
    pub profile: u32,
    /// A code of [`Memory`].
    pub memory: u32,
    /// 1: a debugger looks on: faults in moved code happen where the program has it.
    pub debugged: u32,
    /// 1: accesses that nothing orders end the run, unless they are among those that are [known](crate::RegionMap::forgive).
    pub races: u32,
    /// Number of the access at which the run ends, counted as in [`AccessReport::serial`](crate::AccessReport); 0: none.
    pub stop_at: u64,
    /// An address: who allocates a block with it tells so; 0: nobody does.
    pub asked: u64,
    /// Pairs of sites whose races are known, and sites whose plain accesses are atomic.
    pub(crate) forgiven: u32,
    /// See `forgiven`.
    pub(crate) deliberate: u32,
    /// One more than the number of sites chosen to be steps at the memory level; 0: all are.
    pub(crate) chosen: u32,
    /// One more than the number of chosen sites with which runs that are repeated in the process begin; from there on each
    /// run adds what it shows to conflict. 0: the choice stays as it is.
    pub(crate) learn: u32,
    /// Stretches of the schedule to follow; 0: the strategy decides.
    pub(crate) replay: u64,
    /// How often the first run of a process is made again at most, until two in a row make the same steps; 0: never.
    pub settle: u32,
    /// Length of the parameters of the runs that come before the one that follows a schedule; 0: none do.
    pub(crate) past: u32,
    /// Those runs.
    pub(crate) earlier: Earlier,
    /// So many runs in a row of a process that show no new order of conflicting places are the last; 0: nobody counts them.
    pub quiet: u64,
}

impl Settings {
    /// Whether it is looked which accesses of the run meet others.
    pub fn is_looked_at(&self) -> bool {
        self.profile & LOOKED_AT != 0
    }

    /// Whether accesses to what is handed over are steps.
    pub fn has_handed(&self) -> bool {
        self.profile & HANDED_OVER != 0
    }

    /// Says both.
    pub fn set_profile(&mut self, looked_at: bool, handed: bool) {
        self.profile = (u32::from(looked_at) * LOOKED_AT) | (u32::from(handed) * HANDED_OVER);
    }

    /// A run under carrier with virtual time and the given seed.
    pub fn new(switching: Switching, seed: u64, run: u64) -> Settings {
        Settings {
            switching: switching as u32,
            timeouts: Timeouts::Choice as u32,
            clock: ClockSource::Virtual as u32,
            random: RandomSource::Seeded as u32,
            seed,
            run,
            max_steps: 10_000_000,
            in_process: 0,
            preempt_ms: 4,
            listen: 0,
            calls: 0,
            guard: 0,
            guided: 0,
            parameters: 0,
            hold: 0,
            profile: 0,
            memory: Memory::Sc as u32,
            debugged: 0,
            races: 0,
            stop_at: 0,
            asked: 0,
            forgiven: 0,
            deliberate: 0,
            chosen: 0,
            learn: 0,
            replay: 0,
            settle: 0,
            past: 0,
            earlier: Earlier::default(),
            quiet: 0,
        }
    }
}
