//! Carrying the scheduler's choices out on kernel threads.
//!
//! Exactly one logical thread holds the *token* and executes program code under control; only the token's holder
//! touches the [`Runtime`]. A choice passes the token on ([`handover`]). A logical thread sits either on the
//! *carrier*, one kernel thread that executes many of them as fibers, or at its *home*, the kernel thread that libc
//! made for it. Baton mode is the case in which everyone is at home.
//!
//! - [`logical`]: a logical thread and its seat
//! - [`handover`]: passing the token, also when nobody can run for the moment
//! - [`carrier`]: the kernel thread that executes fibers, and the homes that wait meanwhile
//! - [`lifecycle`]: beginning and ending logical threads; [`leaving`]: threads that end from within;
//!   [`robust`]: what they leave locked
//! - [`point`], [`descriptors`], [`calls`]: what the interposed functions call
//! - [`session`]: beginning a run; [`ending`]: the report
//! - [`signals`]: signals on their way; [`timers`]: timers of the program, whose time is virtual
//! - [`idling`]: threads that only sleep while the outside world is awaited
//! - [`watcher`]: descriptors while nobody holds the token
//! - [`outside`]: threads that are not under control
//! - [`preempt`]: threads that compute without a step; [`blocked`]: threads that wait in the kernel with the token
//! - [`in_process`], [`pool`]: run after run in one process, with the same kernel threads; [`closing`]: what a run
//!   leaves running

mod blocked;
pub(crate) mod calls;
mod carrier;
mod closing;
mod descriptors;
mod ending;
mod handover;
mod idling;
mod in_process;
mod inspect;
mod leaving;
mod lifecycle;
mod logical;
pub(crate) mod outside;
mod point;
mod pool;
mod preempt;
mod robust;
mod session;
pub(crate) mod signals;
pub(crate) mod timers;
mod watcher;

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32};

use waylay_control_protocol::{RegionMap, Settings, Switching};

use crate::sched::{ByAddress, Limits, Scheduler, Series, State};

pub(crate) use calls::Whereabouts;
pub(crate) use descriptors::{descriptors_changed, unknown_event, wait_for_descriptors};
pub(crate) use ending::{end_at_race, finalise};
pub(crate) use handover::{demote_me, in_handlers};
pub(crate) use in_process::{begin as begin_in_process, end as end_in_process, stop as stop_in_process};
pub(crate) use leaving::call_until_exit;
pub(crate) use lifecycle::{complete_join, create, exit_point, join_point, last_words, lookup, main_left};
pub(crate) use logical::{Logical, Place, Routine};
pub(crate) use outside::kernel_threads;
pub(crate) use point::{
    Waited, acquire, acquire_from_outside, away, call_off, event_at, freed, interrupt, sleep, step, taken, wait, waiting_on, wake,
    wake_or_move,
};
pub(crate) use preempt::{TICK_SIGNALS, note_modules};
pub(crate) use session::{note_uncontrolled_thread, 
    Planned, begin, begin_restored, can_carry, is_prepared_in_process, plan, prepare_in_process, prepare_to_restore,
    recalled, settings_of,
};

/// Everything about the run that goes on.
pub(crate) struct Runtime {
    pub(crate) sched: Scheduler,
    pub(crate) region: RegionMap,
    pub(crate) settings: Settings,
    /// When the run has gone on for long enough.
    pub(crate) limits: Limits,
    pub(crate) switching: Switching,
    /// By [`ThreadId`](waylay_schedule::ThreadId).
    pub(crate) logicals: Vec<*mut Logical>,
    /// By `pthread_t`.
    pub(crate) handles: ByAddress<usize, *mut Logical>,
    pub(crate) carrier: carrier::Carrier,
    /// Seeded bytes for `getrandom` and its like.
    pub(crate) random: waylay_schedule::ChaCha,
    /// Looks at a clock since the last step: a loop that only reads the time has to let others run.
    pub(crate) looks: u32,
    pub(crate) watches: Vec<descriptors::Watch>,
    /// How long threads have only slept while the outside world was awaited.
    pub(crate) idling: idling::Idling,
    /// Signals to the process that every thread blocks: bit n-1 is signal n.
    pub(crate) held: u64,
    /// Signals of timers that would end the process.
    pub(crate) overdue: Vec<(i32, signals::Origin)>,
    /// Signals on their way.
    pub(crate) sent: Vec<signals::Sent>,
    /// The main thread.
    pub(crate) main: *mut Logical,
    /// Runs are repeated in this process: threads go to the pool.
    pub(crate) pooling: bool,
    pub(crate) pool: Vec<*mut Logical>,
    /// The runs of this process, if they are repeated.
    pub(crate) series: Series,
}

impl Runtime {
    /// A number that changes with every step, also from run to run: two looks that see the same saw the same moment.
    pub(crate) fn moment(&self) -> u64 {
        /// More steps than a run has between two looks.
        const STEPS_BITS: u32 = 40;
        self.series.begun().wrapping_shl(STEPS_BITS).wrapping_add(self.sched.steps)
    }

    /// Who the carrier is for libc while no fiber executes on it.
    pub(crate) fn carrier_identity(&self) -> u64 {
        self.carrier.idle.fs_base()
    }

    /// Whether no more program code runs on this thread.
    pub(crate) fn has_finished(&self, thread: *mut Logical) -> bool {
        // SAFETY: logical threads live as long as their run.
        let id = unsafe { (*thread).id };
        self.sched.thread(id).state == State::Finished
    }
}

/// The token's companion: what threads without the token may touch.
pub(crate) struct Shared {
    /// Threads that were away and are back, newest first.
    pub(crate) arrivals: AtomicPtr<Logical>,
    /// Nobody holds the token; the first thread to arrive takes it.
    pub(crate) floating: AtomicBool,
    /// Threads are being resumed one by one to describe themselves.
    pub(crate) inspecting: AtomicBool,
    /// Somebody is in `arrivals`, or a thread outside the schedule left a letter.
    pub(crate) attention: AtomicBool,
    /// A created kernel thread has reached its place.
    pub(crate) started: AtomicU32,
}

pub(crate) static SHARED: Shared = Shared {
    arrivals: AtomicPtr::new(core::ptr::null_mut()),
    floating: AtomicBool::new(false),
    inspecting: AtomicBool::new(false),
    attention: AtomicBool::new(false),
    started: AtomicU32::new(0),
};

struct Slot(UnsafeCell<Option<Runtime>>);

// SAFETY: only the holder of the token looks inside.
unsafe impl Sync for Slot {}

static RUNTIME: Slot = Slot(UnsafeCell::new(None));

/// The runtime.
///
/// # Safety
/// The caller holds the token, a run has begun, and no borrow of the result lives across a handover.
#[inline(always)]
pub(crate) unsafe fn runtime() -> *mut Runtime {
    // SAFETY: the slot is filled before the first logical thread exists and never emptied.
    unsafe {
        let slot = RUNTIME.0.get();
        debug_assert!((*slot).is_some());
        (*slot).as_mut().unwrap_unchecked()
    }
}

/// Whether the library itself needs this signal.
pub(crate) fn is_our_signal(signal: i32) -> bool {
    signal == preempt::SIGNAL || signal == blocked::SIGNAL
}

/// Fills the slot.
///
/// # Safety
/// No logical thread exists yet.
unsafe fn install(runtime: Runtime) {
    // SAFETY: nobody can hold the token.
    unsafe { *RUNTIME.0.get() = Some(runtime) };
}
