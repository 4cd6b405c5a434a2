//! A logical thread: who it is for libc, and where it sits.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU64, Ordering};

use waylay_schedule::ThreadId;

pub(crate) use crate::heap::tag::Routine;

use super::pool::Blocks;
use super::signals::Handled;
use crate::interpose::processors;
use crate::switch::{Context, Signal, Stack};

/// How many were made.
static MADE: AtomicU64 = AtomicU64::new(0);

/// Which kernel thread executes a logical thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The carrier, as a fiber.
    Carrier,
    /// Its own kernel thread.
    Home,
}

/// One logical thread. Lives at a fixed address from its creation until its run is forgotten.
#[derive(Debug)]
pub(crate) struct Logical {
    /// Its number in the run.
    pub(crate) id: ThreadId,
    /// How many were made before it in this process.
    pub(crate) made: u64,
    pub(crate) place: Place,
    /// Where it was suspended on the carrier side.
    pub(crate) context: Context,
    /// It is suspended as `context` although it sits at home: its home has to adopt the context first.
    pub(crate) adoptable: bool,
    /// Passes the token to a thread that waits at home.
    pub(crate) baton: Signal,
    /// Wakes the parked home, which then adopts `context`.
    pub(crate) homeward: Signal,
    /// The home thread itself, while it is parked.
    pub(crate) park: Context,
    pub(crate) park_stack: Option<Stack>,
    /// Signals that the thread had blocked before its home was parked.
    pub(crate) mask: u64,
    /// `pthread_self()`, and the kernel's number of the home thread.
    pub(crate) handle: usize,
    pub(crate) kernel_id: i32,
    pub(crate) routine: Option<Routine>,
    pub(crate) argument: *mut c_void,
    pub(crate) detached: bool,
    /// More than 0 while it holds something that nobody must run into: no step of its own lets others run.
    pub(crate) unpreemptible: u32,
    /// Somebody asked it to end, and it may end at any step.
    pub(crate) cancelled: bool,
    pub(crate) cancels_anywhere: bool,
    /// Signals it will raise on itself when it runs next: bit n-1 is signal n.
    pub(crate) pending_signals: u64,
    /// Signals that it waits for and takes, instead of handling them.
    pub(crate) accepts: u64,
    /// It waits for a handler to run.
    pub(crate) pauses: bool,
    /// The stack for signals that it asked for on the carrier.
    pub(crate) alternate_stack: Option<libc::stack_t>,
    /// The processors that it asked for; none: those of the process.
    pub(crate) affinity: Option<processors::Mask>,
    /// Whether handlers have run since it began to wait.
    pub(crate) handled: Handled,
    /// It does not end at cancellation points for now.
    pub(crate) keeps_going: bool,
    /// Handlers of signals that it is in.
    pub(crate) handlers: u32,
    /// How often the destructor that runs last has run.
    pub(crate) rounds: u32,
    /// What the routine returned, for a thread that goes to the pool.
    pub(crate) result: *mut c_void,
    /// Its kernel thread waits for another routine when this one returns.
    pub(crate) recyclable: bool,
    /// It is in the pool.
    pub(crate) pooled: bool,
    /// It ended in a way after which it cannot be used again.
    pub(crate) spent: bool,
    /// Stack size asked for; 0 is the default.
    pub(crate) stack_size: usize,
    pub(crate) blocks: Blocks,
    /// libc's list of robust mutexes that the thread holds, once somebody asked for it.
    pub(crate) robust_list: *mut c_void,
    /// Next in the list of arrivals.
    pub(crate) next_arrival: *mut Logical,
}

impl Logical {
    /// A thread that starts at home.
    pub(crate) fn new(routine: Option<Routine>, argument: *mut c_void) -> Box<Logical> {
        Box::new(Logical {
            id: ThreadId::MAIN,
            made: MADE.fetch_add(1, Ordering::Relaxed),
            place: Place::Home,
            context: Context::empty(),
            adoptable: false,
            baton: Signal::new(),
            homeward: Signal::new(),
            park: Context::empty(),
            park_stack: None,
            mask: 0,
            handle: 0,
            kernel_id: 0,
            routine,
            argument,
            detached: false,
            unpreemptible: 0,
            cancelled: false,
            cancels_anywhere: false,
            pending_signals: 0,
            accepts: 0,
            pauses: false,
            alternate_stack: None,
            affinity: None,
            handled: Handled::Nothing,
            keeps_going: false,
            handlers: 0,
            rounds: 0,
            result: core::ptr::null_mut(),
            recyclable: false,
            pooled: false,
            spent: false,
            stack_size: 0,
            blocks: Blocks::default(),
            robust_list: core::ptr::null_mut(),
            next_arrival: core::ptr::null_mut(),
        })
    }
}
