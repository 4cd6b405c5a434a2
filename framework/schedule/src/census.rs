//! Who touches what, counted in profiling runs: what a selective strategy may focus on.
//!
//! Candidates are objects that at least two threads touch and that every profiling run had under the same name
//! (addresses may differ from run to run), and kinds of events that at least two threads do. The table has a fixed
//! size, so that counting does not allocate; what does not fit is not counted and cannot be chosen.

use std::collections::HashMap;

use crate::event::{Event, ObjectId, Space, ThreadId};
use crate::run::Focus;

/// Pairs of object and thread that are counted in one run.
const CAPACITY: usize = 1 << 14;

/// Events by focus and thread.
#[derive(Clone, Debug, Default)]
pub struct Census {
    /// Greatest counts over all runs, and the number of runs that had the pair.
    known: HashMap<(Focus, ThreadId), (u64, u32)>,
    current: HashMap<(Focus, ThreadId), u64>,
    runs: u32,
}

/// Whether the event is singled out.
#[inline]
pub fn in_focus(focus: Option<Focus>, event: &Event) -> bool {
    match focus {
        None => true,
        Some(Focus::Object(object)) => event.kind.space() == Space::Address && event.object == object,
        Some(Focus::Kind(kind)) => event.kind == kind,
    }
}

impl Census {
    /// Starts a run in which events are counted.
    pub fn begin(&mut self) {
        self.current.clear();
        self.current.reserve(CAPACITY);
    }

    /// Counts one event.
    pub fn count(&mut self, thread: ThreadId, event: &Event) {
        let mut add = |focus| {
            if let Some(count) = self.current.get_mut(&(focus, thread)) {
                *count += 1;
            } else if self.current.len() < CAPACITY {
                self.current.insert((focus, thread), 1);
            }
        };
        add(Focus::Kind(event.kind));
        let named = event.object != ObjectId::NONE && event.object != ObjectId::UNKNOWN;
        if named && event.kind.space() == Space::Address && !event.is_local() {
            add(Focus::Object(event.object));
        }
    }

    /// Takes the counts of the run in.
    pub fn end(&mut self) {
        self.runs += 1;
        for (pair, count) in self.current.drain() {
            let (greatest, runs) = self.known.entry(pair).or_default();
            *greatest = (*greatest).max(count);
            *runs += 1;
        }
    }

    /// How many runs were counted.
    pub fn runs(&self) -> u32 {
        self.runs
    }

    /// What can be focused on, in an order that does not depend on the table.
    pub fn candidates(&self) -> Vec<Focus> {
        let mut sharers: HashMap<Focus, u32> = HashMap::new();
        for (&(focus, _), &(_, runs)) in &self.known {
            if runs == self.runs {
                *sharers.entry(focus).or_default() += 1;
            }
        }
        let mut shared: Vec<Focus> =
            sharers.into_iter().filter(|&(_, threads)| threads > 1).map(|(focus, _)| focus).collect();
        shared.sort_by_key(|focus| match focus {
            Focus::Object(object) => (0, object.0),
            Focus::Kind(kind) => (1, u64::from(kind.code())),
        });
        shared
    }

    /// How many events of the focus each of `threads` threads has.
    pub fn lengths(&self, focus: Focus, threads: usize) -> Vec<u64> {
        (0..threads)
            .map(|thread| self.known.get(&(focus, ThreadId(thread as u32))).map_or(0, |&(count, _)| count))
            .collect()
    }
}
