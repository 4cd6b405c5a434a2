//! What is asked of a campaign from outside while it runs: that it ends in order (Ctrl-C, a signal, a word from inside
//! this process), or that it says what is running now.

use std::time::Duration;

pub use waylay_interrupt::{insist, request, requested};

use crate::sys;

/// How long the end of a console waits for a campaign to end in order; the system ends it after five seconds.
const LAST_WORDS: Duration = Duration::from_secs(4);

/// From now on the first Ctrl-C (or SIGTERM, SIGHUP, the end of the console) is noted and the second ends this process at once;
/// hosts die with it. What its processes leave behind becomes its own.
pub fn watch() {
    waylay_interrupt::watch(waylay_interrupt::Ending { before: sys::give_back_terminal, grace: LAST_WORDS });
    sys::supervise();
}

/// From now on an abort of this process, which is what follows when there is no memory for it, ends in a sentence and an exit
/// code, where there are signals.
pub fn watch_for_abort(exit_code: u8) {
    sys::watch_for_abort(exit_code);
}

/// From now on SIGUSR1 and Ctrl-\ (SIGQUIT) ask what is running, where there are signals.
pub fn watch_for_looks() {
    sys::watch_for_looks();
}

/// Whether somebody has asked since the last call; for whoever has no campaign at work that would answer.
pub fn take_look() -> bool {
    sys::take_look()
}

/// Remembers how the terminal is, so that an end at once gives it back. False when standard error is none.
pub fn remember_terminal() -> bool {
    sys::remember_terminal()
}

/// Gives the terminal back as it was remembered.
pub fn give_back_terminal() {
    sys::give_back_terminal();
}

/// Whether it was remembered and not given back since.
pub fn is_terminal_taken() -> bool {
    sys::is_terminal_taken()
}
