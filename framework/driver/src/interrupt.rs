//! The wish that everything ends in order: Ctrl-C, a signal, or a word from inside this process.

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
