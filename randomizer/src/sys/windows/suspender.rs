//! One window: all threads are asked to stop first and waited for afterwards, so that those waits overlap.

use std::collections::HashMap;
use std::io;
use std::os::windows::io::OwnedHandle;
use std::time::{Duration, Instant};

use crate::identity::{ProcessId, ThreadId};
use crate::suspension::{Fate, GiveUp, Suspension};

use super::ledger::ENTRIES;
use super::process::{is_over, open_process};
use super::suspended::{Refusal, Suspended, Thread};
use super::watchdog::Watched;

/// Handles of threads that ended are looked for when this many have come since.
const SWEEP: usize = 256;

/// Suspends threads of one process. Belongs to the thread that made it.
#[derive(Debug)]
pub(crate) struct Suspender {
    process: OwnedHandle,
    watched: Watched,
    threads: HashMap<ThreadId, Thread>,
    sweep_at: usize,
}

impl Suspender {
    /// For the threads of this process.
    pub(crate) fn new(pid: ProcessId) -> io::Result<Suspender> {
        Ok(Suspender {
            process: open_process(pid)?,
            watched: Watched::begin()?,
            threads: HashMap::new(),
            sweep_at: SWEEP,
        })
    }

    /// Holds these threads for this time, or until `interrupted`, and lets them go. `pause` waits for at most the time
    /// given. What happened to each thread is added to `out`.
    ///
    /// # Errors
    /// Never: the system lets go of a thread that does not stop as of any other.
    pub(crate) fn suspend(
        &mut self,
        threads: &[ThreadId],
        hold: Duration,
        interrupted: impl Fn() -> bool,
        pause: impl Fn(Duration),
        out: &mut Vec<Suspension>,
    ) -> Result<(), GiveUp> {
        let threads = &threads[..threads.len().min(ENTRIES)];
        self.open(threads);
        let began = Instant::now();
        let end = began + hold;
        let begin = |thread, fate| Suspension { thread, asked: began, stopped: None, over: began, fate };
        let mut held: Vec<(Suspended<'_>, Suspension)> = Vec::with_capacity(threads.len());
        for (place, id) in threads.iter().enumerate() {
            let result = match self.threads.get(id) {
                Some(thread) => thread.suspend(self.watched.ledger(), place),
                None => Err(Refusal::Gone),
            };
            match result {
                Ok(suspended) => held.push((suspended, begin(*id, Fate::Resumed))),
                Err(Refusal::Gone) => out.push(begin(*id, Fate::NotThere)),
                Err(Refusal::Denied) => out.push(begin(*id, Fate::Refused(None))),
            }
        }
        for (suspended, suspension) in &mut held {
            match suspended.confirm() {
                Ok(()) => suspension.stopped = Some(Instant::now()),
                Err(_) if suspended.thread.has_ended() => suspension.fate = Fate::Gone,
                Err(_) => suspension.fate = Fate::Unstoppable,
            }
        }
        while let remaining = end.saturating_duration_since(Instant::now())
            && !remaining.is_zero()
            && !interrupted()
            && !is_over(&self.process)
        {
            pause(remaining);
        }
        for (suspended, mut suspension) in held {
            if suspended.thread.has_ended() {
                suspension.fate = Fate::Gone;
            }
            drop(suspended);
            suspension.over = Instant::now();
            out.push(suspension);
        }
        Ok(())
    }

    /// Opens those that are new: opening takes longer than suspending, so handles are kept.
    fn open(&mut self, threads: &[ThreadId]) {
        if self.threads.len() >= self.sweep_at {
            self.threads.retain(|_, thread| !thread.has_ended());
            self.sweep_at = self.threads.len() + SWEEP;
        }
        for id in threads {
            if self.threads.get(id).is_none_or(Thread::has_ended) {
                self.threads.remove(id);
                if let Ok(thread) = Thread::open(*id) {
                    self.threads.insert(*id, thread);
                }
            }
        }
    }

    /// Nothing of a dead thread is left to be reaped here.
    pub(crate) fn tend(&mut self) -> bool {
        true
    }

    /// The status of a process is not taken by whoever suspends it.
    pub(crate) fn leader_status(&self) -> Option<i32> {
        None
    }
}

/// Runs `work` on a thread of its own, as on the systems where letting go means ending it.
pub(crate) fn on_suspending_thread<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let named = std::thread::Builder::new().name("waylay-tracer".into());
        let suspending = named.spawn_scoped(scope, work)?;
        Ok(suspending.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}
