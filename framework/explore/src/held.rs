//! A run of its own, held where it ends, so that the stacks of all its threads can be taken.
//!
//! In baton switching every logical thread is a kernel thread with a stack of its own. How a process is held is the
//! system's part: `sys::held`.

use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use waylay_control_protocol::RegionMap;
use waylay_evidence::{CrashContext, ProcessId, ThreadId};

use crate::program::Program;
use crate::scratch::Workplace;
use crate::server::{RunError, cpu_time, doing, kill};
use crate::streams::Streams;
use crate::sys::held as sys;

/// Where a run ends.
#[derive(Clone, Debug)]
pub enum Stop {
    /// At a signal or an exception that ends the process.
    Signal(Box<CrashContext>),
    /// Where the process would end itself, with this status.
    Exit {
        /// Who ends it.
        thread: ThreadId,
        /// With what.
        status: i32,
    },
    /// It is over and could not be held; with its status, as the system says it.
    Gone(i32),
    /// It did not end in time.
    Late,
}

/// Where a run is to be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldAt {
    /// Where it ends.
    End,
    /// Where it first says on its standard error output that it panicked; where it ends, if it never does. A process that ends
    /// because of a panic has left the code that panicked.
    Panic,
}

/// A process that is held. It is killed when this is dropped.
#[derive(Debug)]
pub struct Held {
    child: Child,
    _workplace: Workplace,
    /// Where it is held.
    pub stop: Stop,
    /// Its threads in the order of their creation, the first being the main thread.
    pub threads: Vec<ThreadId>,
    /// What it wrote.
    pub output: (Vec<u8>, Vec<u8>),
}

impl Held {
    /// The process.
    pub fn process(&self) -> ProcessId {
        ProcessId(self.child.id())
    }

    /// Processor time that it has used.
    pub(crate) fn cpu_time(&self) -> Duration {
        cpu_time(&self.child)
    }

    /// The status that the system would give, had it not been held.
    pub fn status(&self) -> i32 {
        match &self.stop {
            Stop::Signal(crash) => crash.signal,
            Stop::Exit { status, .. } => sys::exit_status(*status),
            Stop::Gone(status) => *status,
            Stop::Late => sys::LATE_STATUS,
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        kill(&mut self.child);
    }
}

/// Runs the program as the region says and holds it, all on the calling thread.
pub fn hold(
    program: &Program,
    library: &Path,
    region: &RegionMap,
    limit: Duration,
    at: HoldAt,
) -> Result<Held, RunError> {
    let mut streams = doing("prepare the program's input and output", Streams::new(program))?;
    let workplace = doing("copy the program's folder", Workplace::new(program))?;
    let child = sys::start(program, &workplace, library, region, &streams, at);
    let child = doing("start the program to hold it", child)?;
    let mut held = Held {
        child,
        _workplace: workplace,
        stop: Stop::Late,
        threads: Vec::new(),
        output: (Vec::new(), Vec::new()),
    };
    (held.stop, held.threads) = match sys::follow(&mut held.child, region, Instant::now() + limit) {
        Err(error) if error.kind() == std::io::ErrorKind::Interrupted => return Err(RunError::Interrupted),
        followed => doing("follow the program", followed)?,
    };
    held.output = doing("read the program's output", streams.take())?;
    Ok(held)
}
