//! Windows: Toolhelp, SuspendThread, console events.
//!
//! A suspend count belongs to the suspended thread and outlives whoever raised it. So every suspension is written down
//! beforehand in memory that a second process shares, the [`watchdog`], which lowers the counts again when the
//! randomizer ends without having done so itself.

mod attach;
mod inherited;
mod launch;
mod ledger;
mod process;
mod signals;
mod suspended;
mod suspender;
mod watchdog;

/// The longest thread name that the system keeps, in bytes: any.
pub(crate) const LONGEST_NAME: Option<usize> = None;

pub(crate) use attach::check_target;
pub(crate) use inherited::{attach_page, inherit_stats};
pub(crate) use launch::{Launched, ending_signal, launch};
pub(crate) use process::{Life, own_processor_time, thread_name, threads_of};
pub(crate) use signals::{install_signals, stop_here_if_asked, stop_request};
pub(crate) use suspender::{Suspender, on_suspending_thread};
pub(crate) use watchdog::stand_watch;
