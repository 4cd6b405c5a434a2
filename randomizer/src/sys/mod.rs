//! The operating system, one twin per platform exporting the same functions.
//!
//! Mechanism only: how threads are listed, stopped and let go. Which ones and for how long is decided elsewhere.

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
use linux as system;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
use windows as system;

pub(crate) use system::{
    LONGEST_NAME, Launched, Life, Suspender, attach_page, check_target, ending_signal, inherit_stats,
    install_signals, launch, on_suspending_thread, own_processor_time, stand_watch, stop_here_if_asked,
    stop_request, thread_name, threads_of,
};
