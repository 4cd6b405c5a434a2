//! Replay: follows a recorded schedule and says where the program leaves it.
//!
//! At every step the recorded thread must be enabled, and at the start of every segment it must be about to do the
//! kind of event that was recorded. The first step at which this fails is the divergence; from there on the run goes
//! on without preemption, so that it comes to an end. Nothing is random.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::event::{Event, EventKind, ThreadId};
use crate::rotation::Rotation;
use crate::run::{Run, RunParameters, RunReport};
use crate::schedule::Schedule;
use crate::strategy::Strategy;

/// Where and how a run left the recorded schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Error)]
#[error("the run left the schedule at step {step}: expected {expected}, saw {seen}")]
pub struct Divergence {
    /// The step, 0 being the first of the run.
    pub step: u64,
    /// What the schedule has there.
    pub expected: Expected,
    /// What the program offered.
    pub seen: Seen,
}

/// What the schedule has at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expected {
    /// A step of this thread; the kind is known at the start of a segment.
    Step(ThreadId, Option<EventKind>),
    /// Nothing: the recorded run was over.
    End,
}

/// What the program offered instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Seen {
    /// The thread was there but not enabled.
    NotEnabled,
    /// The thread was about to do something else.
    Event(EventKind),
    /// The program went on.
    MoreSteps,
    /// The program was over, or nothing was enabled.
    NoThread,
}

impl fmt::Display for Expected {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expected::Step(thread, Some(kind)) => write!(out, "{thread} about to do {kind}"),
            Expected::Step(thread, None) => write!(out, "{thread}"),
            Expected::End => out.write_str("the end of the run"),
        }
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Seen::NotEnabled => out.write_str("that this thread is not enabled"),
            Seen::Event(kind) => write!(out, "it about to do {kind}"),
            Seen::MoreSteps => out.write_str("further steps"),
            Seen::NoThread => out.write_str("no enabled thread"),
        }
    }
}

/// Follows a schedule.
#[derive(Clone, Debug)]
pub struct Replay {
    schedule: Schedule,
    segment: usize,
    /// Steps done of the current segment.
    done: u64,
    step: u64,
    rotation: Rotation,
    kinds: Vec<EventKind>,
    divergence: Option<Divergence>,
}

impl Replay {
    /// A replay of this schedule.
    pub fn new(schedule: Schedule) -> Replay {
        Replay {
            schedule,
            segment: 0,
            done: 0,
            step: 0,
            rotation: Rotation::default(),
            kinds: Vec::new(),
            divergence: None,
        }
    }

    /// Where the run left the schedule, if it did. A run that ended early is found out when `pick` is called at its
    /// end, or by [`unfinished`](Replay::unfinished).
    pub fn divergence(&self) -> Option<Divergence> {
        self.divergence
    }

    /// Steps of the schedule that were not taken.
    pub fn unfinished(&self) -> u64 {
        self.schedule.steps().saturating_sub(self.step)
    }

    fn check(&mut self) -> Result<ThreadId, Divergence> {
        let at = |expected, seen| Divergence { step: self.step, expected, seen };
        let Some(&segment) = self.schedule.segments().get(self.segment) else {
            return Err(at(Expected::End, Seen::MoreSteps));
        };
        let kind = (self.done == 0).then_some(segment.first);
        let expected = Expected::Step(segment.thread, kind);
        if self.rotation.is_empty() {
            return Err(at(expected, Seen::NoThread));
        }
        if !self.rotation.contains(segment.thread) {
            return Err(at(expected, Seen::NotEnabled));
        }
        let seen = self.kinds[segment.thread.index()];
        if kind.is_some_and(|kind| kind != seen) {
            return Err(at(expected, Seen::Event(seen)));
        }
        Ok(segment.thread)
    }

    fn advance(&mut self) {
        self.step += 1;
        self.done += 1;
        if self.schedule.segments()[self.segment].steps == self.done {
            self.segment += 1;
            self.done = 0;
        }
    }
}

impl Strategy for Replay {
    fn plan(&mut self, _run: Run) -> Option<RunParameters> {
        Some(RunParameters::of("replay"))
    }

    fn begin(&mut self, _run: Run, _parameters: &RunParameters) {
        self.segment = 0;
        self.done = 0;
        self.step = 0;
        self.rotation.clear();
        self.kinds.clear();
        self.divergence = None;
    }

    fn spawned(&mut self, thread: ThreadId, _parent: Option<ThreadId>) {
        self.rotation.reserve(thread);
        let threads = self.kinds.len().max(thread.index() + 1);
        self.kinds.resize(threads, EventKind::ThreadStart);
    }

    fn ready(&mut self, thread: ThreadId, next: Event) {
        if thread.index() >= self.kinds.len() {
            self.spawned(thread, None);
        }
        self.kinds[thread.index()] = next.kind;
        self.rotation.ready(thread, next);
    }

    fn blocked(&mut self, thread: ThreadId) {
        self.rotation.remove(thread);
    }

    fn finished(&mut self, thread: ThreadId) {
        self.rotation.remove(thread);
    }

    fn pick(&mut self) -> Option<ThreadId> {
        if self.divergence.is_none() {
            let over = self.rotation.is_empty() && self.segment == self.schedule.segments().len();
            match self.check() {
                Ok(thread) => {
                    self.advance();
                    self.rotation.turn(thread);
                    return Some(thread);
                }
                Err(_) if over => return None,
                Err(divergence) => self.divergence = Some(divergence),
            }
        }
        let chosen = self.rotation.at(0)?;
        self.rotation.turn(chosen);
        Some(chosen)
    }

    fn end(&mut self, _report: &RunReport<'_>) {}
}
