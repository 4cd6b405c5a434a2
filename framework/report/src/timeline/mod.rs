//! Who ran when, until it failed: a lane per thread, as data, as a picture, and as a trace for other viewers.
//!
//! - [`conversation`]: from what a strategy was told and answered in a run of strict mode, with blocked threads and locks
//! - [`names`]: what the objects in it are called
//! - [`schedule`]: from a recorded schedule alone, which knows who ran and nothing else
//! - [`suspensions`]: from the log of a randomizer
//! - [`svg`]: the picture
//! - `waiting`: loops in which a thread waits, folded
//! - [`trace`]: the format of ui.perfetto.dev and chrome://tracing

pub mod conversation;
pub mod names;
mod panel;
pub mod schedule;
pub mod suspensions;
pub mod svg;
pub mod trace;
mod waiting;

use serde::{Deserialize, Serialize};

use crate::cause::{Constraint, EventPlace, Why};

/// What is said of a thread that waits, when nothing tells for what.
const NO_OBJECT: &str = "waits";

/// What the numbers on the axis are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Steps of a schedule, from 0.
    Steps,
    /// Nanoseconds since the randomizer began.
    Nanoseconds,
}

/// What a thread does for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doing {
    /// It runs; in strict mode it is the only one.
    Running,
    /// It could run and is not chosen.
    Ready,
    /// It waits for another thread, or for time.
    Blocked,
    /// A randomizer holds it.
    Suspended,
    /// It is there; whether it runs is not known.
    Alive,
}

/// A stretch of one thread's time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Which lane.
    pub lane: usize,
    /// From here.
    pub from: u64,
    /// To there, which is not part of it.
    pub to: u64,
    /// What it does.
    pub doing: Doing,
    /// What it does there first, or waits for.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub label: String,
}

/// A lock, and who had it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Which lane.
    pub lane: usize,
    /// Index in [`Timeline::locks`].
    pub lock: usize,
    /// From here.
    pub from: u64,
    /// To there.
    pub to: u64,
}

/// The processor goes from one thread to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchPoint {
    /// At this step.
    pub at: u64,
    /// From this lane.
    pub from: usize,
    /// To that one.
    pub to: usize,
    /// Whether the one that ran could have gone on: then somebody chose.
    pub forced: bool,
}

/// One step, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepWords {
    /// Which step.
    pub at: u64,
    /// Whose.
    pub lane: usize,
    /// What was done.
    pub what: String,
    /// How often, of a thread that waits in a loop: its other looks until the last one are left out.
    #[serde(skip_serializing_if = "is_once", default = "once")]
    pub times: u64,
}

fn once() -> u64 {
    1
}

fn is_once(times: &u64) -> bool {
    *times == 1
}

/// The moment at which it failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failing {
    /// When.
    pub at: u64,
    /// Which thread, if one is to blame.
    pub lane: Option<usize>,
    /// What, in a word or two.
    pub what: String,
}

/// Two events whose order decides, of which both happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrow {
    /// Lane and step of the first.
    pub from: (usize, u64),
    /// Lane and step of the second.
    pub to: (usize, u64),
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// What it is about.
    pub title: String,
    /// What the numbers are.
    pub unit: Unit,
    /// Where it begins.
    pub start: u64,
    /// Where it ends.
    pub end: u64,
    /// Names of threads, one lane each.
    pub lanes: Vec<String>,
    /// What they do, in any order.
    pub spans: Vec<Span>,
    /// Names of locks.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub locks: Vec<String>,
    /// Who held them.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub held: Vec<Held>,
    /// Where the processor went from one to another.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub switches: Vec<SwitchPoint>,
    /// The last steps.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub steps: Vec<StepWords>,
    /// Where it failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failing: Option<Failing>,
    /// The orders that it needs.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub arrows: Vec<Arrow>,
    /// What the reader should know.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub notes: Vec<String>,
}

impl Timeline {
    /// An empty one.
    pub fn new(title: impl Into<String>, unit: Unit) -> Timeline {
        Timeline {
            title: title.into(),
            unit,
            start: 0,
            end: 0,
            lanes: Vec::new(),
            spans: Vec::new(),
            locks: Vec::new(),
            held: Vec::new(),
            switches: Vec::new(),
            steps: Vec::new(),
            failing: None,
            arrows: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Adds an arrow for every order that the failure needs. An event that never came is drawn at the end.
    pub fn explain(&mut self, why: &Why) {
        let constraints = why.cause.iter().flat_map(|cause| &cause.constraints);
        let end = self.failing.as_ref().map_or(self.end, |failing| failing.at);
        for Constraint { first, then, .. } in constraints {
            let at = |event: &EventPlace| (event.thread as usize, event.step.unwrap_or(end));
            if first.step.is_some() && (first.thread.max(then.thread) as usize) < self.lanes.len() {
                self.arrows.push(Arrow { from: at(first), to: at(then) });
            }
        }
    }

    /// The part from `start` on: what lies before is left out, what reaches into it is cut.
    pub fn since(&self, start: u64) -> Timeline {
        let mut part = self.clone();
        part.start = start.max(self.start);
        let from = part.start;
        part.spans.retain(|span| span.to > from);
        part.spans.iter_mut().for_each(|span| span.from = span.from.max(from));
        part.held.retain(|held| held.to > from);
        part.held.iter_mut().for_each(|held| held.from = held.from.max(from));
        part.switches.retain(|switch| switch.at >= from);
        part.steps.retain(|step| step.at >= from);
        part.arrows.retain(|arrow| arrow.from.1 >= from && arrow.to.1 >= from);
        part
    }

    /// Says what a thread waits for in the end, where the stretch itself does not.
    pub fn waits_at_end(&mut self, lane: usize, what: &str) {
        let end = self.end;
        let mut spans = self.spans.iter_mut().filter(|span| (span.lane, span.to) == (lane, end));
        if let Some(span) = spans.find(|span| span.doing == Doing::Blocked && span.label == NO_OBJECT) {
            span.label = format!("{NO_OBJECT}: {what}");
        }
    }

    /// The last part that has at most so many stretches; all of it when it has no more.
    pub fn last(&self, most: usize) -> Timeline {
        let mut begins: Vec<u64> = self.spans.iter().map(|span| span.to).collect();
        let Some(more) = begins.len().checked_sub(most).filter(|more| *more > 0) else { return self.clone() };
        begins.sort_unstable();
        let mut part = self.since(begins[more - 1]);
        part.notes.push("only the end of it was kept".to_owned());
        part
    }

    /// Adds a stretch, together with the one before it if that is the same going on.
    fn add(&mut self, span: Span) {
        if span.from >= span.to {
            return;
        }
        // Stretches of one lane come in order, and those of the others since are few.
        let before = self.spans.iter_mut().rev().take(64).find(|other| other.lane == span.lane);
        match before {
            Some(before) if before.to == span.from && before.doing == span.doing => before.to = span.to,
            _ => self.spans.push(span),
        }
    }
}
