//! Strict mode for whole programs, seen from outside: the program is run schedule after schedule, unmodified, and what
//! fails is confirmed, kept, replayed and made small.
//!
//! Nothing here runs inside the program; that is the control library's part, which is loaded first into it. What differs
//! between systems is in `sys`. In the order in which data flows:
//!
//! - [`program`]: what to run, and whether strict mode can work for it at all
//! - [`streams`]: where its input comes from and its output goes; `scratch`: the folder in which it runs
//! - `guide`: what decides who runs
//! - [`server`]: one schedule after the other, each in a process of its own: children of a fork server or, on Windows,
//!   started with our library put in
//! - [`restored`]: one process whose runs begin from a snapshot; [`restart`]: when that is trusted; `worker`: both together
//! - [`observed`]: what became of one run
//! - [`oracle`]: whether that is a failure
//! - [`learner`]: the strategy on this side: plans runs, learns from what was heard of them
//! - [`share`]: which runs are made here, when several machines share them
//! - [`sites`]: which accesses are worth a step, learned as well
//! - [`explorer`]: the loop over all of these; `batch`: the runs that are made at once; `findings`: what failing ones come
//!   to
//! - [`held`]: a run of its own, held at the instruction where it fails, so that stacks can be taken
//! - [`confirm`]: the same schedule again in a fresh process, with evidence
//! - [`race`]: two accesses that nothing orders; [`deliberate`]: whether that is what it looks like; [`variable`]: of what
//! - [`recording`]: what is kept of a failure, and read back
//! - [`plugin_test`]: the same for schedules of plugin tests, which a campaign found
//! - [`replay`] and [`minimize`]: what can be done with it; [`debugger`]: under gdb
//! - [`directed`]: a search that is aimed at pairs of places
//! - [`hunt`]: a schedule for a failure that has none
//! - [`follow`]: its cause in another build
//! - `cause`: which orders of events it needs; [`explain`]: minimised, and its cause, within a [`budget`]
//! - [`suite`]: the cases of a suite of unit tests, each a program of its own
//! - [`summary`]: what people and machines are told

mod batch;
pub mod budget;
mod cause;
pub mod confirm;
pub mod delayed;
pub mod deliberate;
pub mod directed;
pub mod explain;
pub mod explorer;
mod findings;
pub mod follow;
mod guide;
pub mod held;
pub mod hunt;
pub mod learner;
mod libraries;
pub mod minimize;
pub mod observed;
pub mod oracle;
mod places;
pub mod plugin_test;
pub mod program;
pub mod race;
pub mod recording;
pub mod replay;
pub mod restart;
pub mod restored;
mod scratch;
pub mod server;
pub mod share;
pub mod sites;
pub mod streams;
pub mod suite;
pub mod summary;
mod sys;
pub mod timings;
pub mod variable;
mod worker;

pub use sys::{ServerFailure, debugger};
pub use waylay_control_protocol::{Level, Memory, cache_folder};

/// A folder for what is not kept; it is gone with the value.
pub fn scratch_folder() -> std::io::Result<tempfile::TempDir> {
    tempfile::tempdir()
}

/// What is a step unless told otherwise.
pub const DEFAULT_LEVEL: &str = "auto";
