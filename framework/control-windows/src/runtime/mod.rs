//! Carrying the scheduler's choices out on kernel threads.
//!
//! Exactly one logical thread holds the *token* and executes program code under control; only the token's holder touches
//! the [`Runtime`]. A choice passes the token on.
//!
//! - [`logical`]: a logical thread
//! - [`handover`]: passing the token, also when nobody can run for the moment
//! - [`lifecycle`]: beginning and ending logical threads
//! - [`point`]: what the interposed functions call
//! - [`session`]: beginning a run; [`ending`]: the report; [`inspect`]: stacks in words
//! - [`outside`]: threads that are not under control; [`preempt`]: threads that compute without a step
//! - [`in_process`]: run after run in one process; [`closing`]: what a run leaves running
//! - [`pool`]: kernel threads that are used again; [`renewal`]: what has to be as new then

mod closing;
mod ending;
mod handover;
mod in_process;
mod inspect;
mod lifecycle;
mod logical;
pub(crate) mod outside;
mod point;
pub(crate) mod pool;
mod preempt;
mod renewal;
mod session;

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use waylay_control_protocol::{RegionMap, Settings};
use waylay_schedule::ThreadId;
use waylay_scheduler::{ByAddress, Limits, Scheduler, Series, State};
use windows_sys::Win32::Foundation::HANDLE;

pub(crate) use ending::{end_at_race, finalise};
pub(crate) use in_process::{begin as begin_in_process, end as end_in_process, stop as stop_in_process};
pub(crate) use lifecycle::{create, exit_point, join_event, join_point, key_of, note_joined, resume};
pub(crate) use logical::{Logical, Routine};
pub(crate) use point::{Waited, acquire, away, event_at, freed, sleep, step, taken, wait, wake};
pub(crate) use session::{begin, is_prepared_in_process, prepare_in_process, recalled};

use crate::interpose::{Handles, Mutexes};
use crate::watch::edge;

/// Everything about the run that goes on.
pub(crate) struct Runtime {
    pub(crate) sched: Scheduler,
    pub(crate) region: RegionMap,
    pub(crate) settings: Settings,
    /// When the run has gone on for long enough.
    pub(crate) limits: Limits,
    /// By [`ThreadId`].
    pub(crate) logicals: Vec<*mut Logical>,
    /// By the system's number of the thread.
    pub(crate) by_number: ByAddress<usize, *mut Logical>,
    /// What the handles of the program are.
    pub(crate) handles: Handles,
    /// Places that are being initialised once, and by whom.
    pub(crate) initialising: Vec<(usize, *mut Logical)>,
    /// Who holds the mutexes of POSIX threads.
    pub(crate) mutexes: Mutexes,
    /// Seeded bytes for those who ask for random ones.
    pub(crate) random: waylay_schedule::ChaCha,
    /// Looks at a clock since the last step: a loop that only reads the time has to let others run.
    pub(crate) looks: u32,
    /// The main thread.
    pub(crate) main: *mut Logical,
    /// Runs are repeated in this process.
    pub(crate) repeating: bool,
    /// The runs of this process, if they are repeated.
    pub(crate) series: Series,
    /// A thread that has finished and is on its way out; whoever runs next waits until it is gone.
    pub(crate) leaving: HANDLE,
}

impl Runtime {
    /// Whether no more program code runs on this thread.
    pub(crate) fn has_finished(&self, thread: *mut Logical) -> bool {
        // SAFETY: logical threads live as long as their run.
        let id = unsafe { (*thread).id };
        id != ThreadId(u32::MAX) && self.sched.thread(id).state == State::Finished
    }

    /// Threads that are not seen took part, and what they order is not known.
    pub(crate) fn note_outsiders(&self) {
        edge::outsider();
        self.note_uncontrolled();
    }

    /// Something outside the library's control took part.
    pub(crate) fn note_uncontrolled(&self) {
        self.region.report().partly_controlled.store(1, Ordering::Relaxed);
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
    /// The system's number of the thread that holds the token.
    pub(crate) holder: AtomicU32,
}

pub(crate) static SHARED: Shared = Shared {
    arrivals: AtomicPtr::new(core::ptr::null_mut()),
    floating: AtomicBool::new(false),
    inspecting: AtomicBool::new(false),
    attention: AtomicBool::new(false),
    holder: AtomicU32::new(0),
};

struct Slot(UnsafeCell<Option<Runtime>>);

// SAFETY: only the holder of the token looks inside.
unsafe impl Sync for Slot {}

static RUNTIME: Slot = Slot(UnsafeCell::new(None));

/// The runtime.
///
/// # Safety
/// The caller holds the token, a run has begun, and no borrow of the result lives across a handover.
#[inline]
pub(crate) unsafe fn runtime() -> *mut Runtime {
    // SAFETY: the slot is filled before the first logical thread exists and never emptied.
    unsafe {
        let slot = RUNTIME.0.get();
        debug_assert!((*slot).is_some());
        (*slot).as_mut().unwrap_unchecked()
    }
}

/// Fills the slot.
///
/// # Safety
/// No logical thread exists yet.
unsafe fn install(runtime: Runtime) {
    // SAFETY: nobody can hold the token.
    unsafe { *RUNTIME.0.get() = Some(runtime) };
}
