//! Ctrl-C, Ctrl-Break and the end of the console: only a flag is set here; a window is always closed in order.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use waylay_interrupt::Ending;

/// How long the end of a console waits for that; less than the driver has, which waits for us.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// Makes the events that end a program set a flag. The second Ctrl-C means at once: the watchdog resumes what is suspended.
pub(crate) fn install_signals() -> &'static AtomicBool {
    waylay_interrupt::watch(Ending { before: || {}, grace: LAST_WORDS });
    waylay_interrupt::flag()
}

/// Console events reach a child of ours by themselves.
pub(crate) fn stop_request() -> Option<i32> {
    None
}

/// There is no Ctrl-Z that stops a process.
pub(crate) fn stop_here_if_asked() {}
