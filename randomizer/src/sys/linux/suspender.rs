//! One window: all threads are asked to stop first and waited for afterwards, because a running thread
//! reaches its stop only when it is scheduled, and those waits overlap.
//!
//! Threads that stopped are held until the window's end. If some have not stopped by then, the others are held a little
//! longer: what stands still does not compete for a processor with those that have yet to reach their stop. After that
//! grace they are let go, and late ones as soon as they stop. One that does not stop at all (uninterruptible
//! sleep) would keep the window open for ever. The kernel has one way out: when the tracing thread ends,
//! everything it traces is let go, stopped or not. So windows are opened on a thread of their own, which gives up by
//! ending.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use crate::identity::{ProcessId, ThreadId};
use crate::suspension::{Fate, GiveUp, Suspension};

use super::alarm::{Alarm, attaching};
use super::procfs;
use super::tracee::{Asked, Dying, Event, Reaped, Refusal, Stopped};

/// How long threads are held beyond the window's end while others have not stopped.
const GRACE: Duration = Duration::from_millis(10);
/// How long a window may overrun before its late threads are given up. With 16 spinning threads on 2
/// processors the last one stops after some 30 ms.
const PATIENCE: Duration = Duration::from_millis(250);
/// How long it may overrun when somebody waits for the window's end; a collector gives up on us after some 200 ms.
const PATIENCE_WHEN_ASKED: Duration = Duration::from_millis(20);

/// Suspends threads of one process. Belongs to the thread that made it.
#[derive(Debug)]
pub(crate) struct Suspender {
    leader: ThreadId,
    _alarm: Alarm,
    window: Vec<Entry>,
    answers: Vec<(ThreadId, Result<Asked, Refusal>)>,
    events: Vec<(Event, Instant)>,
    dying: Vec<Dying>,
    leader_status: Option<i32>,
}

/// A thread of the window that is open.
#[derive(Debug)]
struct Entry {
    suspension: Suspension,
    state: State,
}

#[derive(Debug)]
enum State {
    Asked(Asked),
    Held(Stopped),
    Over,
}

impl Suspender {
    /// For the threads of this process.
    pub(crate) fn new(pid: ProcessId) -> io::Result<Suspender> {
        // The default slack of 50 µs would be added to every rest and every hold.
        // SAFETY: sets a number of the calling thread.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_usize) };
        Ok(Suspender {
            leader: ThreadId(pid.0),
            _alarm: Alarm::new()?,
            window: Vec::new(),
            answers: Vec::new(),
            events: Vec::new(),
            dying: Vec::new(),
            leader_status: None,
        })
    }

    /// Holds these threads for this time, or until `interrupted`, and lets them go. `pause` waits for at most the time
    /// given. What happened to each thread is added to `out`.
    ///
    /// # Errors
    /// When a thread does not stop: the calling thread must end, which lets it go.
    pub(crate) fn suspend(
        &mut self,
        threads: &[ThreadId],
        hold: Duration,
        interrupted: impl Fn() -> bool,
        pause: impl Fn(Duration),
        out: &mut Vec<Suspension>,
    ) -> Result<(), GiveUp> {
        let began = Instant::now();
        let end = began + hold;
        let mut left = self.ask(threads, began);
        let mut closing = None;
        while left > 0 {
            let signalled = self.collect(left);
            let mut events = std::mem::take(&mut self.events);
            for (event, at) in events.drain(..) {
                left -= self.note_event(event, at, closing.is_some());
            }
            self.events = events;
            if !signalled {
                continue;
            }
            let now = Instant::now();
            let asked_to_close = interrupted();
            if closing.is_none() && (asked_to_close || now >= end + GRACE) {
                closing = Some(now);
                self.let_go();
            }
            let patience = if asked_to_close { PATIENCE_WHEN_ASKED } else { PATIENCE };
            if closing.is_some_and(|since| now.saturating_duration_since(since) > patience) {
                self.give_up();
                out.extend(self.window.drain(..).map(|entry| entry.suspension));
                return Err(GiveUp);
            }
            left -= self.look_at_asked(closing.is_some());
        }
        if closing.is_none() {
            self.hold(end, interrupted, pause);
        }
        out.extend(self.window.drain(..).map(|entry| entry.suspension));
        Ok(())
    }

    /// Holds what has stopped until the end. Threads that are killed meanwhile are reaped: the exit or exec of their
    /// process waits for that.
    fn hold(&mut self, end: Instant, interrupted: impl Fn() -> bool, pause: impl Fn(Duration)) {
        let any_held = |window: &[Entry]| window.iter().any(|entry| matches!(entry.state, State::Held(_)));
        while let remaining = end.saturating_duration_since(Instant::now())
            && !remaining.is_zero()
            && !interrupted()
            && any_held(&self.window)
        {
            pause(remaining);
            while let event @ (Event::Stopped(_) | Event::Ended(..)) = Event::poll() {
                self.note_event(event, Instant::now(), true);
            }
        }
        self.let_go();
    }

    /// Waits for this many events, or until a signal comes; true if one came.
    ///
    /// Nothing else is done here: every wait is a switch to the target and back, and whatever runs between two of them
    /// runs with cold caches.
    fn collect(&mut self, count: usize) -> bool {
        for _ in 0..count {
            match Event::next() {
                Event::Nothing | Event::NoTracee => return true,
                event => self.events.push((event, Instant::now())),
            }
        }
        false
    }

    /// Returns how many fewer are waited for.
    fn note_event(&mut self, event: Event, at: Instant, closing: bool) -> usize {
        match event {
            Event::Stopped(stopped) => self.stopped(stopped, at, closing),
            Event::Ended(thread, status) => self.ended(thread, status),
            Event::Nothing | Event::NoTracee => 0,
        }
    }

    /// Asks all to stop; returns how many were. Once one is refused the rest is left alone: somebody else may be about
    /// to attach to one after the other.
    fn ask(&mut self, threads: &[ThreadId], began: Instant) -> usize {
        let answers = &mut self.answers;
        let ended = attaching(threads, |thread| {
            let answer = Asked::ask(thread);
            let refused = matches!(answer, Err(Refusal::Denied));
            answers.push((thread, answer));
            !refused
        });
        if let Some((thread, status)) = ended {
            self.note_end(thread, status);
        }
        let mut asked = 0;
        let mut answers = std::mem::take(&mut self.answers);
        for (thread, answer) in answers.drain(..) {
            let (state, fate) = match answer {
                Ok(state) => {
                    asked += 1;
                    (State::Asked(state), Fate::Resumed)
                }
                Err(refusal) => (State::Over, self.explain(thread, &refusal)),
            };
            let suspension = Suspension { thread, asked: began, stopped: None, over: began, fate };
            self.window.push(Entry { suspension, state });
        }
        self.answers = answers;
        self.window.sort_unstable_by_key(|entry| entry.suspension.thread);
        asked
    }

    fn explain(&self, thread: ThreadId, refusal: &Refusal) -> Fate {
        match refusal {
            Refusal::Gone => Fate::NotThere,
            // The kernel refuses dead threads in the same words.
            Refusal::Denied if !procfs::is_alive(ProcessId(self.leader.0), thread) => Fate::NotThere,
            Refusal::Denied => Fate::Refused(procfs::tracer_of(thread)),
        }
    }

    /// A thread has stopped; returns how many fewer are waited for.
    fn stopped(&mut self, stopped: Stopped, at: Instant, closing: bool) -> usize {
        let thread = stopped.thread();
        let index = self.window.binary_search_by_key(&thread, |entry| entry.suspension.thread);
        match index.map(|index| &mut self.window[index]) {
            Ok(entry) if matches!(entry.state, State::Asked(_)) => {
                entry.suspension.stopped = Some(at);
                entry.state = State::Held(stopped);
                if closing {
                    entry.let_go(Instant::now(), &mut self.dying);
                }
                1
            }
            // Not one we wait for: it went through an exec and goes on under the first thread's id.
            _ => {
                self.dying.extend(stopped.resume().err());
                0
            }
        }
    }

    /// A thread has ended; returns how many fewer are waited for.
    fn ended(&mut self, thread: ThreadId, status: i32) -> usize {
        self.note_end(thread, status);
        let index = self.window.binary_search_by_key(&thread, |entry| entry.suspension.thread);
        match index.map(|index| &mut self.window[index]) {
            Ok(entry) => entry.gone(),
            Err(_) => 0,
        }
    }

    fn note_end(&mut self, thread: ThreadId, status: i32) {
        if thread == self.leader {
            self.leader_status = Some(status);
        }
    }

    /// A signal came while waiting, or there is nothing to wait for: looks at each that was asked.
    fn look_at_asked(&mut self, closing: bool) -> usize {
        let mut fewer = 0;
        for index in 0..self.window.len() {
            let State::Asked(asked) = &self.window[index].state else { continue };
            match asked.look() {
                Event::Nothing => {}
                event @ (Event::Stopped(_) | Event::Ended(..)) => {
                    fewer += self.note_event(event, Instant::now(), closing);
                }
                Event::NoTracee => {
                    let entry = &mut self.window[index];
                    if let State::Asked(asked) = std::mem::replace(&mut entry.state, State::Over) {
                        self.dying.push(asked.into_dying(self.leader));
                        entry.suspension.fate = Fate::Gone;
                        entry.suspension.over = Instant::now();
                        fewer += 1;
                    }
                }
            }
        }
        fewer
    }

    fn let_go(&mut self) {
        let now = Instant::now();
        for entry in &mut self.window {
            entry.let_go(now, &mut self.dying);
        }
    }

    fn give_up(&mut self) {
        self.let_go();
        let now = Instant::now();
        for entry in &mut self.window {
            if let State::Asked(asked) = &entry.state {
                let alive = procfs::is_alive(ProcessId(self.leader.0), asked.thread());
                entry.suspension.fate = if alive { Fate::Unstoppable } else { Fate::Gone };
                entry.suspension.over = now;
                entry.state = State::Over;
            }
        }
    }

    /// Reaps threads that ended while they were traced; true when none are left.
    pub(crate) fn tend(&mut self) -> bool {
        for dying in std::mem::take(&mut self.dying) {
            match dying.reap() {
                Reaped::Gone(Some((thread, status))) => self.note_end(thread, status),
                Reaped::Gone(None) => {}
                Reaped::NotYet(dying) => self.dying.push(dying),
            }
        }
        self.dying.is_empty()
    }

    /// The exit status of the process, if it ended while we traced its first thread and it is our child: then the
    /// status was given to us as its tracer, and nobody can wait for it again.
    pub(crate) fn leader_status(&self) -> Option<i32> {
        self.leader_status
    }
}

impl Entry {
    fn let_go(&mut self, now: Instant, dying: &mut Vec<Dying>) {
        if !matches!(self.state, State::Held(_)) {
            return;
        }
        if let State::Held(stopped) = std::mem::replace(&mut self.state, State::Over) {
            let result = stopped.resume();
            self.suspension.over = now;
            if let Err(killed) = result {
                self.suspension.fate = Fate::Gone;
                dying.push(killed);
            }
        }
    }

    /// The thread ended; returns how many fewer are waited for.
    fn gone(&mut self) -> usize {
        let waited_for = usize::from(matches!(self.state, State::Asked(_)));
        match std::mem::replace(&mut self.state, State::Over) {
            // Its end was reported, so the guard has nothing left to let go.
            State::Held(stopped) => std::mem::forget(stopped),
            State::Asked(_) | State::Over => {}
        }
        self.suspension.fate = Fate::Gone;
        self.suspension.over = Instant::now();
        waited_for
    }
}

/// Runs `work` on a thread of its own and returns when the kernel has let go of everything that it traced.
pub(crate) fn on_suspending_thread<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let (sender, receiver) = std::sync::mpsc::channel();
        let named = std::thread::Builder::new().name("waylay-tracer".into());
        let tracing = named.spawn_scoped(scope, move || {
            // SAFETY: returns a number.
            let _ = sender.send(unsafe { libc::gettid() });
            work()
        })?;
        let thread = receiver.recv();
        let result = tracing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // Joining ends a little before the kernel lets go; the thread leaves the list after that.
        if let Ok(thread) = thread {
            while fs::exists(format!("/proc/self/task/{thread}")).unwrap_or(false) {
                std::thread::sleep(Duration::from_micros(50));
            }
        }
        Ok(result)
    })
}
