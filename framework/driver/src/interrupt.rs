//! What is asked of a campaign from outside while it runs: that it ends in order (Ctrl-C, a signal, a word from inside
//! this process), or that it says what is running now.

use crate::sys;

/// From now on the first Ctrl-C (or SIGTERM, SIGHUP) is noted and the second ends this process at once.
pub fn watch() {
    sys::watch_for_interrupts();
}

/// Whether everything is to end.
pub fn requested() -> bool {
    sys::interrupted()
}

/// Asks for it, as Ctrl-C does: a service manager has other ways to say so.
pub fn request() {
    sys::interrupt();
}

/// Does what Ctrl-C does, for a terminal in which that is only a key: the second time it ends this process at once.
pub fn insist() {
    sys::insist();
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
