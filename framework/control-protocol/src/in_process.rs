//! Runs repeated inside one process: the functions that a host finds in the control library by name.
//!
//! ```text
//! begin(run)      the calling thread is the main thread of a controlled run
//!     test body   may create threads, which take part
//! end()           lets threads that are left run, tells the strategy, fills in a summary
//! ```
//!
//! Instead of `end`, any thread of the run may call `stop`: it keeps the processor for good, and no other thread of
//! the run goes on. That is how a failure is held still to be looked at; the process is thrown away afterwards. Between
//! two runs, `stop` ends the series.
//!
//! What a run leaves running: threads that are there at `end` go on under the schedule until they have ended, wait for
//! something that nobody will bring, or have taken [`LEFT_STEPS`] steps. Those that have not ended then are *left
//! behind*. That is no failure (a pool waits for work), unless one of them waits for a lock: that is a deadlock. A
//! process in which a thread was left behind begins no further run, because the thread would take part in it.
//!
//! A process hands over to the next one: when it stops, or leaves threads behind, it writes a
//! `waylay_schedule::Handover` into the region, with what the run was given and what the next run should be given.
//!
//! All calls come from one thread. Between `end` and `begin` the thread runs free. The region, given in the
//! environment with [`Settings::in_process`](crate::Settings::in_process) set, holds seed and strategy; its run
//! parameters name the strategy, which learns from run to run.

/// Name of the function of type [`BeginRun`].
pub const BEGIN_RUN: &str = "waylay_control_begin_run";
/// Name of the function of type [`EndRun`].
pub const END_RUN: &str = "waylay_control_end_run";

/// Name of the function of type [`StopRun`].
pub const STOP_RUN: &str = "waylay_control_stop_run";

/// Steps that threads may take after the end of a run before they count as left behind.
pub const LEFT_STEPS: u64 = 10_000;

/// Begins run number `run`; returns a code of [`Begun`].
pub type BeginRun = unsafe extern "C" fn(run: u64) -> u32;
/// Ends the run; `failed` is 1 when the test found a failure. `summary` may be null.
pub type EndRun = unsafe extern "C" fn(failed: u32, summary: *mut RunSummary);
/// Stops the run where it is, because of a failure. Safe in a signal handler of the thread that failed.
pub type StopRun = unsafe extern "C" fn();

/// What [`BeginRun`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Begun {
    /// The run goes on.
    Yes = 0,
    /// A systematic strategy has seen everything: there is nothing left to run.
    Exhausted = 1,
    /// No region was given for runs in the process, a run is going on already, or one was stopped or left threads
    /// behind.
    Refused = 2,
}

/// The numbers of a run.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunSummary {
    /// Choices made.
    pub steps: u64,
    /// Choices that changed the running thread.
    pub switches: u64,
    /// Stretches of the recorded schedule, in the region.
    pub stretches: u64,
    /// Threads that took part.
    pub threads: u32,
    /// 1 when something outside the library's control took part.
    pub partly_controlled: u32,
    /// Threads that were left behind; the process can make no further run then.
    pub left: u32,
    /// Zero.
    pub reserved: u32,
}
