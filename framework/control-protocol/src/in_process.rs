//! Runs repeated inside one process: the functions that a host finds in the control library by name.
//!
//! ```text
//! begin(run)      the calling thread is the main thread of a controlled run
//!     test body   may create threads, which take part
//! end(failed)     waits for threads that are left, tells the strategy, fills in a summary
//! ```
//!
//! All calls come from one thread. Between `end` and `begin` the thread runs free. The region, given in the
//! environment with [`Settings::in_process`](crate::Settings::in_process) set, holds seed and strategy; its run
//! parameters name the strategy, which learns from run to run.

/// Name of the function of type [`BeginRun`].
pub const BEGIN_RUN: &str = "waylay_control_begin_run";
/// Name of the function of type [`EndRun`].
pub const END_RUN: &str = "waylay_control_end_run";

/// Begins run number `run`; returns a code of [`Begun`].
pub type BeginRun = unsafe extern "C" fn(run: u64) -> u32;
/// Ends the run; `failed` is 1 when the test found a failure. `summary` may be null.
pub type EndRun = unsafe extern "C" fn(failed: u32, summary: *mut RunSummary);

/// What [`BeginRun`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Begun {
    /// The run goes on.
    Yes = 0,
    /// A systematic strategy has seen everything: there is nothing left to run.
    Exhausted = 1,
    /// No region was given for runs in the process, or a run is going on already.
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
}
