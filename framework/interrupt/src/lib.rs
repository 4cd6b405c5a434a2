//! The wish of a user that a command ends: Ctrl-C, SIGTERM, a hang-up, the end of a console. The first is noted, and whoever is
//! at work asks for it and ends in order; the second ends the process at once.
//!
//! The package `ctrlc` installs the handlers and waits for them on a thread of its own. What it cannot do stands beside it, in
//! the twins of `sys`:
//!
//! - it does not say who sent a signal: what a test sends to Waylay is no wish of the user ([`disregard`]);
//! - it does not say which signal came, or when: two in no time are one, however late its thread runs;
//! - its handler would replace an ignored hang-up, which `nohup` asks for;
//! - it lets Windows end the process as soon as a console closes, before anything could end in order;
//! - it needs a thread, and a machine that runs out of them is one of the reasons to press Ctrl-C.
//!
//! The randomizer has handlers of its own on Linux, and says there why.

mod requests;
mod sys;

use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub use requests::{request, requested};

/// How a process ends that is asked to.
#[derive(Clone, Copy, Debug)]
pub struct Ending {
    /// Called before it ends at once, possibly in a signal handler: makes async-signal-safe calls only.
    pub before: fn(),
    /// How long the end of a console waits for an end in order, on Windows. The system itself waits for five seconds.
    pub grace: Duration,
}

/// The exit code after a second Ctrl-C, as shells have it.
const AT_ONCE: u8 = 130;

static ENDING: OnceLock<Ending> = OnceLock::new();

/// From now on the first Ctrl-C (or SIGTERM, SIGHUP, the end of the console) is noted and the second ends this process at
/// once. Only the first call counts.
pub fn watch(ending: Ending) {
    if ENDING.set(ending).is_ok() {
        sys::watch(act, ending.grace);
    }
}

/// Becomes true when everything is to end.
pub fn flag() -> &'static AtomicBool {
    requests::flag()
}

/// Does what Ctrl-C does, for a terminal in which that is only a key: the second time it ends this process at once.
pub fn insist() {
    requests::count();
    act();
}

/// From now on what this process group sends us is no wish of the user, where there are signals. More groups than can be noted
/// are not.
pub fn disregard(group: u32) {
    sys::disregard(group);
}

/// From now on what this process group sends us is a wish again.
pub fn regard(group: u32) {
    sys::regard(group);
}

/// The last signal that a disregarded group has sent us since the last call.
pub fn take_disregarded() -> Option<i32> {
    sys::take_disregarded()
}

/// Ends this process if it was asked more than once. Makes async-signal-safe calls only.
fn act() {
    if requests::are_repeated() {
        if let Some(ending) = ENDING.get() {
            (ending.before)();
        }
        sys::end_at_once(AT_ONCE);
    }
}
