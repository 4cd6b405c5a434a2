//! The driver: runs campaigns. It starts hosts, watches them through the shared page, takes evidence from outside when
//! something breaks, restarts, and goes on. It never runs test code and never waits for a host without a limit.
//!
//! In the order in which data flows:
//!
//! - [`config`]: a TOML file becomes a checked configuration, or diagnostics with line and column
//! - [`catalog`]: plugin files are found and described, each in a process of its own
//! - [`campaign`]: configuration and catalog become scenarios; each is supervised until its end
//! - `host`: one host process, and who in it is late
//! - [`interrupt`]: the wish that it all ends
//! - `randomizer`: the process that suspends threads of that host
//! - [`failure`]: a failure as data
//! - [`scratch`]: folders for temporary files of processes that may be killed
//! - [`secrets`]: what is not written down
//! - [`store`]: findings become files that survive anything
//! - [`report`]: what people read while it runs
//! - [`archive`]: what is kept becomes the data of reports, at any later time

pub mod archive;
pub mod campaign;
pub mod catalog;
pub mod config;
pub mod environment;
pub mod failure;
mod host;
pub mod interrupt;
pub mod last_words;
mod randomizer;
pub mod report;
pub mod scratch;
pub mod secrets;
pub mod store;
mod sys;
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
