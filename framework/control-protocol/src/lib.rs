//! What the driver and the control library tell each other.
//!
//! A crate of its own because the driver must not link the control library: that one defines `pthread_mutex_lock`
//! and its like, which would take effect in the driver too.
//!
//! - [`region`]: memory shared by both. The driver writes [`settings`] before a run; the library writes its
//!   [`report`], the schedule and an [`account`] while it runs, so that they survive the death of the process.
//! - [`conditions`]: what a person says about how runs are made, of which the settings follow.
//! - `told`: what a run told, and whether it is `possible` that one did: for the driver, which takes copies.
//! - [`account`]: what a run tells about itself; judged as data, put into words in `words` for people.
//! - [`race`]: two accesses that nothing orders, as the library tells of them.
//! - [`instrumentation`]: which instructions are steps, for the whole life of a process.
//! - `server` (Linux): the messages of the fork server, over a socket; [`batch`]: runs that are ordered many at a time.
//! - [`in_process`]: the functions by which a host repeats runs inside its own process.
//!
//! The library finds both through the environment, the only channel there is before `main`: see [`REGION_VARIABLE`]
//! and [`SERVER_VARIABLE`]. Without the first, the library does nothing at all.

pub mod account;
pub mod batch;
mod coded;
pub mod conditions;
mod delayed;
mod encoding;
pub mod in_process;
pub mod instrumentation;
mod possible;
pub mod race;
pub mod region;
pub mod report;
#[cfg(target_os = "linux")]
pub mod server;
pub mod settings;
mod shared;
mod site_list;
mod sizes;
mod stretch;
mod sys;
mod told;
mod turns;
mod witness;
pub mod words;

pub use account::{Account, Statement};
pub use batch::{Batch, Fate, Record, RecordCopy, Wish};
pub use conditions::{Patch, RunConditions};
pub use delayed::{DelayedReport, DelayedStore};
pub use in_process::{
    BEGIN_RUN, BeginRun, Begun, EARLIER_RUNS, END_RUN, Earlier, EarlierRuns, EndRun, RunSummary, STOP_RUN,
    StopRun,
};
pub use instrumentation::{Instrumentation, Level, Site, cache_folder};
pub use possible::most_in;
pub use race::{AccessReport, Pair, RaceReport};
pub use region::{NoteWriter, Region, RegionError, RegionMap};
pub use report::{Ending, HeldAt, Report, Tally};
#[cfg(target_os = "linux")]
pub use server::{Reply, Request, ServerError, ServerLink};
pub use settings::{ClockSource, Memory, RandomSource, Settings, Switching, Timeouts};
pub use site_list::{Added, SiteList};
pub use stretch::{Note, Stretch};
pub use told::{RunCopy, Told};
pub use turns::Turns;

/// Environment variable with the number of the descriptor (on Windows, of the handle) of the [`Region`].
pub const REGION_VARIABLE: &str = "WAYLAY_CONTROL_REGION";
/// Environment variable with the number of the descriptor of the fork server's socket; absent: no fork server.
pub const SERVER_VARIABLE: &str = "WAYLAY_CONTROL_SERVER";
/// How many blocks of the heap are taken before `main`, so that the program's own lie elsewhere.
pub const SHIFT_VARIABLE: &str = "WAYLAY_CONTROL_SHIFT";

/// The folder by which `LD_LIBRARY_PATH` begins so that the library is found under another name, if there is one: what the program
/// starts is not to look there.
pub const STAND_IN_VARIABLE: &str = "WAYLAY_CONTROL_STAND_IN";

/// Exit status of a process that the library ended because of a deadlock. The region says more.
pub const DEADLOCK_STATUS: i32 = 86;
/// Exit status of a process that the library ended at the step limit. The region says more.
pub const STEP_LIMIT_STATUS: i32 = 87;
/// Exit status of a host that runs one schedule of one test and whose test reported a failure.
pub const TEST_FAILED_STATUS: i32 = 88;
/// Exit status of a process that the library ended at a data race. The region says more.
pub const RACE_STATUS: i32 = 89;
