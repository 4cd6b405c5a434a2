//! The driver: runs campaigns. It starts hosts, watches them through the shared page, takes evidence from outside when
//! something breaks, restarts, and goes on. It never runs test code and never waits for a host without a limit.
//!
//! What a failure is, and the machine that it was seen on, is in `waylay-findings`. The modules in reading order; each needs only those above it (a test, `tools/waylay/tests/architecture`, fails on a
//! cycle):
//!
//! - `sys`: what the driver needs of the operating system, in twins
//! - [`interrupt`], [`scratch`], [`last_words`]: the wish that it all ends, folders for temporary files, what a program printed
//!   before it died
//! - [`config`]: a TOML file becomes a checked configuration, or diagnostics with line and column
//! - [`secrets`]: what is not written down
//! - [`record`]: what a campaign counted, as data
//! - [`store`]: findings become files that survive anything
//! - [`dumps`]: which dumps of a failing process are written, and how large
//! - [`archive`]: what is kept becomes the data of reports, at any later time
//! - `host`: one host process, what it tells, and who in it is late
//! - `randomizer`: the process that suspends threads of that host
//! - [`catalog`]: plugin files are found and described, each in a process of its own
//! - [`report`]: what people read while it runs
//! - [`campaign`]: configuration and catalog become scenarios; each is supervised until its end
//! - [`trial`]: one test as a comparison runs it, without a campaign

mod sys;

pub mod interrupt;
pub mod last_words;
pub mod scratch;

pub use waylay_findings::{environment, failure, machine};

pub mod config;
pub mod secrets;

pub mod record;

pub mod store;

pub mod dumps;

pub mod archive;

mod host;
mod randomizer;

pub mod catalog;

pub mod report;

pub mod campaign;
pub mod trial;

/// From now on files and folders that this process makes can be read by those whom `mode` lets read a file. Tests are
/// not concerned: they make files as they would without us.
pub fn keep_private(mode: config::FileMode) {
    sys::restrict_new_files(mode.0);
}

/// Lets files that a program under test makes have the permissions that they would have without us.
pub fn give_back_mask(command: &mut std::process::Command) {
    sys::give_back_mask(command);
}

/// Whether this process may take the stacks of process `pid`; the reason in words when not.
pub fn can_be_traced(pid: u32) -> Result<(), String> {
    waylay_evidence::capture(waylay_evidence::ProcessId(pid), &waylay_evidence::CaptureOptions::default())
        .map(drop)
        .map_err(|error| error.to_string())
}
