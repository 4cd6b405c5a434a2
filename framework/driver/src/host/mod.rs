//! A host process as the driver holds it: started, talked to, and never left behind.

mod events;
mod log;
mod process;
mod region;
mod told;
mod watch;
mod witness;

pub(crate) use log::HostLog;
pub(crate) use process::{HostCommand, HostProcess, HostTask, StartError};
pub(crate) use region::ControlRegion;
pub use told::{Past, PlainSteps};
pub(crate) use told::{RunTotals, StoppedBy};
pub(crate) use watch::{Limits, Overdue, find_overdue};
pub(crate) use witness::Contradiction;
