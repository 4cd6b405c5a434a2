//! Threads under ptrace. What cannot be done in a state cannot be written.
//!
//! ```text
//!   (running) ──ask──> Asked ──look──> Stopped ──resume──> (running, untraced)
//!                        │                │
//!                        └────────────────┴──> Dying ──reap──> (gone)
//! ```
//!
//! A thread is traced only while it is asked or stopped: staying attached would send every signal of the target
//! through us and lock out every other tracer. `Asked` cannot be let go by itself, because the kernel detaches only
//! from stopped threads; ending the tracing thread lets go of everything ([`super::suspender`]).
//!
//! A traced thread that dies stays a zombie until its tracer has waited for it, and blocks the end or the exec of its
//! whole process meanwhile. So the dying are tended until they are gone, without ever blocking on one: the kernel
//! reports the end of a process's first thread only when all the others are reaped.

use std::io;
use std::ptr;

use crate::identity::ThreadId;

/// A thread that was asked to stop and has not been seen to.
#[must_use = "it stays traced"]
#[derive(Debug)]
pub(super) struct Asked {
    thread: ThreadId,
}

/// A thread that stands still until it is resumed; dropping resumes too.
#[must_use = "dropping it resumes the thread"]
#[derive(Debug)]
pub(super) struct Stopped {
    thread: ThreadId,
    /// The signal that was about to be delivered when the thread stopped; handed on.
    signal: i32,
}

/// A traced thread that has ended or is about to, or that goes on under another id after an exec.
#[must_use = "it must be reaped"]
#[derive(Debug)]
pub(super) struct Dying {
    thread: ThreadId,
}

/// Why a thread cannot be asked.
#[derive(Debug)]
pub(super) enum Refusal {
    /// It has ended.
    Gone,
    /// Not permitted: traced by somebody else or out of our reach.
    Denied,
}

/// What a wait for traced threads found.
#[derive(Debug)]
pub(super) enum Event {
    /// This one has stopped.
    Stopped(Stopped),
    /// This one has ended, with this status.
    Ended(ThreadId, i32),
    /// Nothing, or a signal came.
    Nothing,
    /// There is no such traced thread any more.
    NoTracee,
}

/// A ptrace request without memory arguments.
fn request(operation: libc::c_uint, thread: ThreadId, data: usize) -> io::Result<()> {
    // SAFETY: callers pass only operations that take no address and treat `data` as a plain number, so the
    // kernel touches no memory of this process.
    let result = unsafe {
        libc::ptrace(
            operation,
            thread.0 as libc::pid_t,
            ptr::null_mut::<libc::c_void>(),
            data as *mut libc::c_void,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Attaches to a thread without stopping it.
pub(super) fn seize(thread: ThreadId) -> io::Result<()> {
    request(libc::PTRACE_SEIZE, thread, 0)
}

impl Asked {
    /// Attaches to a thread and asks it to stop.
    pub(super) fn ask(thread: ThreadId) -> Result<Asked, Refusal> {
        match seize(thread) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Err(Refusal::Gone),
            Err(_) => return Err(Refusal::Denied),
        }
        // From here on only the end of the thread can make the request fail, and waiting finds that out.
        let _ = request(libc::PTRACE_INTERRUPT, thread, 0);
        Ok(Asked { thread })
    }

    pub(super) fn thread(&self) -> ThreadId {
        self.thread
    }

    /// Looks what became of this thread; never waits.
    pub(super) fn look(&self) -> Event {
        wait(self.thread.0 as libc::pid_t, libc::WNOHANG)
    }

    /// It ended, or its id did: after an exec by another than the first thread, that one goes on under the id of the
    /// first, still traced.
    pub(super) fn into_dying(self, leader: ThreadId) -> Dying {
        Dying { thread: leader }
    }
}

impl Event {
    /// Waits for the next traced thread of the calling thread that stops or ends; a signal ends the wait.
    pub(super) fn next() -> Event {
        wait(-1, 0)
    }

    /// What a traced thread of the calling thread has done, without waiting for it.
    pub(super) fn poll() -> Event {
        wait(-1, libc::WNOHANG)
    }
}

/// `waitpid` for tracees of the calling thread. Only its own: other threads may have tracees or children.
fn wait(id: libc::pid_t, flags: libc::c_int) -> Event {
    let mut status = 0;
    // SAFETY: `status` outlives the call; nothing else is touched.
    let result = unsafe { libc::waitpid(id, &mut status, libc::__WALL | libc::__WNOTHREAD | flags) };
    if result > 0 {
        let thread = ThreadId(result as u32);
        if !libc::WIFSTOPPED(status) {
            return Event::Ended(thread, status);
        }
        // A stop that we asked for, or one of job control, has the event in the high half and no signal to hand on.
        let asked_for = status >> 16 == libc::PTRACE_EVENT_STOP;
        let signal = if asked_for { 0 } else { libc::WSTOPSIG(status) };
        return Event::Stopped(Stopped { thread, signal });
    }
    if result < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ECHILD) {
        return Event::NoTracee;
    }
    Event::Nothing
}

impl Stopped {
    pub(super) fn thread(&self) -> ThreadId {
        self.thread
    }

    /// Lets the thread run on, untraced.
    pub(super) fn resume(self) -> Result<(), Dying> {
        let result = self.detach();
        let dying = Dying { thread: self.thread };
        std::mem::forget(self);
        // A stopped thread can only be killed; it is no longer stopped then.
        result.map_err(|_| dying)
    }

    fn detach(&self) -> io::Result<()> {
        request(libc::PTRACE_DETACH, self.thread, self.signal as usize)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // Only on the way out of the tracing thread, whose end would do the same a little later.
        let _ = self.detach();
    }
}

/// What became of a dying thread.
pub(super) enum Reaped {
    /// It is gone, with this status if it had one.
    Gone(Option<(ThreadId, i32)>),
    /// Not yet.
    NotYet(Dying),
}

impl Dying {
    /// Looks whether it is gone; never waits.
    pub(super) fn reap(self) -> Reaped {
        match wait(self.thread.0 as libc::pid_t, libc::WNOHANG) {
            // It was not killed but went through an exec, and then reached the stop it was asked for.
            Event::Stopped(stopped) => match stopped.resume() {
                Ok(()) => Reaped::Gone(None),
                Err(dying) => Reaped::NotYet(dying),
            },
            Event::Ended(thread, status) => Reaped::Gone(Some((thread, status))),
            Event::NoTracee => Reaped::Gone(None),
            Event::Nothing => Reaped::NotYet(self),
        }
    }
}
