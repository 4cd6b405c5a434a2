//! The host: the process that loads plugins and runs their tests. It may crash, hang or leak; the driver watches.
//!
//! The host links little and decides nothing. It is told what to run in a [`plan`] on its standard input, shows what
//! every worker is doing in the shared page (`waylay-page`), and reports what the page has no room for as
//! [`event`]s on an inherited pipe. Everything that a test could break is left to the driver, which is another
//! process.
//!
//! In the order in which a run goes through them:
//!
//! - [`plan`]: what the driver wants, as data
//! - [`loader`]: a file becomes a plugin, or an error that says what to do
//! - [`description`]: what is inside a plugin, as data
//! - `context`, `services`, `shared`: what a test may ask of us
//! - `worker`: the loop around `TestMain`
//! - `combine`: tests that run inside another test
//! - `factory`: create and start; `lifecycle`: run, cancel, end
//! - `strict`: the same in strict mode, schedule after schedule; `stage`: one schedule, a whole life of the test;
//!   `alone`: one schedule without a driver
//! - `fatal`: a signal or `exit` inside a test becomes a record before the process is gone
//! - [`event`]: what else the driver should know

mod alone;
mod combine;
mod context;
pub mod description;
pub mod event;
mod factory;
mod fatal;
mod lifecycle;
pub mod loader;
pub mod plan;
mod services;
mod shared;
mod stage;
mod strict;
mod sys;
mod worker;

use std::process::ExitCode;

use event::{Event, Events};
use plan::Plan;

/// Exit code of a host that could not do what it was told; the reason is on its standard error.
const HOST_FAILED: u8 = 3;

/// Runs one schedule of one test, given as the argument of a [`plan::SchedulePlan`], under the control library that was
/// loaded first.
pub fn run_schedule(plan: &str) -> ExitCode {
    let result = plan::SchedulePlan::from_argument(plan)
        .map_err(|error| error.to_string())
        .and_then(|plan| alone::run(&plan));
    let Err(error) = result;
    eprintln!("waylay host: {error}");
    ExitCode::from(HOST_FAILED)
}

/// Runs the host: reads a [`Plan`] from standard input and carries it out.
pub fn main() -> ExitCode {
    let plan = match plan::read_from_stdin() {
        Ok(plan) => plan,
        Err(error) => {
            eprintln!("waylay host: {error}; it is started by `waylay run`, not by hand");
            return ExitCode::from(HOST_FAILED);
        }
    };
    sys::forget_what_we_were_told();
    match plan {
        Plan::Describe { plugin, events } => {
            // SAFETY: the driver made this descriptor for us and told nobody else about it.
            let events = unsafe { Events::from_raw(events) };
            let event = match loader::Plugin::open(&plugin) {
                Ok(plugin) => Event::Described { plugin: description::describe(plugin.info()) },
                Err(error) => Event::PluginRefused { plugin: 0, reason: error.to_string() },
            };
            events.send(&event);
            ExitCode::SUCCESS
        }
        Plan::Run(run) => match lifecycle::run(run) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("waylay host: {error}");
                ExitCode::from(HOST_FAILED)
            }
        },
    }
}
