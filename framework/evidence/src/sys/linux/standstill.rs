//! A whole process that stands still between two looks at it.
//!
//! Tracing ends with the thread that traces, and the dump writer traces from a process of its own, so neither can hold
//! threads for the other. A stop of job control can: attaching to a stopped thread and letting go of it leaves it stopped,
//! and a thread that is just being created joins the stop. Nothing starts, ends or moves until it is over.

use std::time::{Duration, Instant};

use crate::identity::ProcessId;

use super::procfs;

/// How long threads that only wait for a processor are waited for. Each has to get one before it can stop.
const BUSY: Duration = Duration::from_secs(5);
/// Pause between two looks.
const PAUSE: Duration = Duration::from_micros(500);

/// A process that stands still until this is dropped, or until a dump of it was written.
#[derive(Debug)]
pub(crate) struct Standstill {
    pid: ProcessId,
}

impl Standstill {
    /// Stops a process. Threads that cannot be stopped (uninterruptible sleep) are waited for no longer than `patience`;
    /// they start and end nothing meanwhile.
    pub(crate) fn begin(pid: ProcessId, patience: Duration) -> Standstill {
        let began = Instant::now();
        // SAFETY: sends a signal to a process by number; a stale number is an error, not unsafety.
        unsafe { libc::kill(pid.0 as libc::pid_t, libc::SIGSTOP) };
        while began.elapsed() < BUSY.max(patience) {
            let patient = began.elapsed() < patience;
            if procfs::task_letters(pid).all(|letter| match letter {
                b'R' | b'S' => false,
                b'D' => !patient,
                _ => true,
            }) {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        Standstill { pid }
    }
}

impl Drop for Standstill {
    fn drop(&mut self) {
        // The dump writer has let it go on already; a second signal would only be seen by a handler of the target.
        if procfs::task_letters(self.pid).any(|letter| letter == b'T') {
            // SAFETY: as above.
            unsafe { libc::kill(self.pid.0 as libc::pid_t, libc::SIGCONT) };
        }
    }
}
