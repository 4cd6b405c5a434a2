//! The thread randomizer: suspends threads of another process at random, from outside.
//!
//! It needs nothing of the target: no instrumentation, no particular language, no restart. It rests for a random time,
//! chooses some threads, holds them for a random time, lets them go, and begins again; so orders of events that the
//! scheduler brings about once in a month come about within minutes. From the concurrency testing model, section 4.6.
//!
//! In the order in which data flows:
//!
//! - [`settings`]: what is drawn from which distribution, checked
//! - [`target`]: the process, and why it may be out of reach
//! - [`policy`]: which threads, how many, how long: pure, decided by one seed
//! - `census`: who is there; [`quiesce`]: keeping out of the way of dumps and debuggers
//! - `sys`: how threads are stopped and let go, one twin per platform
//! - [`session`]: the loop that puts these together
//! - [`statistics`] and [`report`]: did it do anything; [`log`] and [`recording`]: what exactly, and doing it again
//! - [`bound`]: what it guarantees
//! - [`main`]: the command
//!
//! # Never leave a thread stopped
//!
//! On Linux the kernel resumes what a tracer holds when the tracer ends, however it ends; the tests prove it with
//! `kill -9` in the middle of a suspension. On Windows a suspend count outlives whoever raised it, so a second process
//! undoes what a randomizer that was ended by force had written down. Everything else follows from states that are types: a stopped thread is a
//! guard that resumes when dropped.

pub mod bound;
mod census;
mod command;
mod flags;
mod histogram;
mod identity;
pub mod log;
mod pattern;
pub mod policy;
pub mod quiesce;
pub mod recording;
mod refusal;
pub mod report;
pub mod session;
pub mod settings;
pub mod statistics;
mod suspension;
mod sys;
pub mod target;

pub use command::{BAD_USAGE, COMMAND_FAILED, NOTHING_DONE, REFUSED, main};
pub use histogram::Percentiles;
pub use identity::{Ordinal, ProcessId, ThreadId};
pub use pattern::Pattern;
pub use report::Report;
pub use session::{Observer, Options, RunError, run};
pub use settings::{RawSettings, Settings, SettingsError, SettingsProblem};
pub use target::{Target, TargetError};
