//! Linux: ptrace, `/proc`, signals.

mod alarm;
mod attach;
mod inherited;
mod launch;
mod procfs;
mod signals;
mod suspender;
mod tracee;
mod watchdog;

/// The longest thread name that the system keeps, in bytes.
pub(crate) const LONGEST_NAME: Option<usize> = Some(15);

pub(crate) use attach::check_target;
pub(crate) use inherited::{attach_page, inherit_stats};
pub(crate) use launch::{Launched, ending_signal, launch};
pub(crate) use procfs::{Life, own_processor_time, thread_name, threads_of};
pub(crate) use signals::{install_signals, stop_here_if_asked, stop_request};
pub(crate) use suspender::{Suspender, on_suspending_thread};
pub(crate) use watchdog::stand_watch;
