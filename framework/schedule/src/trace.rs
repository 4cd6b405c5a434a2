//! A run as the sequence of its events, and when two of them are the same up to commuting independent events.
//!
//! Two runs are the same in this sense (Mazurkiewicz equivalent) when each thread does the same events and every two
//! conflicting events come in the same order. It is enough to compare, for every event, which event of each other
//! thread is the last before it that conflicts with it: earlier ones follow by the order within threads.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::event::{Event, ObjectId, Space, ThreadId};
use crate::schedule::Schedule;

/// One step of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Step {
    /// Who ran.
    pub thread: ThreadId,
    /// What it did.
    pub event: Event,
}

/// The events of a run in the order they happened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// The steps.
    pub steps: Vec<Step>,
}

/// An event that touches more granules than this is compared with all others.
const GRANULES: u64 = 64;

/// The last event of a shape by a thread: its number among the events of that thread.
#[derive(Clone, Copy)]
struct Seen {
    thread: ThreadId,
    event: Event,
    number: u64,
}

#[derive(Default)]
struct Past {
    places: HashMap<(Space, u64), Vec<Seen>>,
    /// Events that touch much or something unknown.
    wide: Vec<Seen>,
    /// All events, one of each shape by thread: what a wide event is compared with.
    all: Vec<Seen>,
}

fn places(event: &Event) -> Option<Vec<(Space, u64)>> {
    if event.object == ObjectId::UNKNOWN || event.also == ObjectId::UNKNOWN {
        return None;
    }
    let space = event.kind.space();
    let mut places = Vec::with_capacity(2);
    for (object, extent) in [(event.object, event.extent.max(1)), (event.also, 1)] {
        if object != ObjectId::NONE {
            let last = object.0.saturating_add(u64::from(extent) - 1) >> 3;
            if last - (object.0 >> 3) >= GRANULES {
                return None;
            }
            places.extend((object.0 >> 3..=last).map(|granule| (space, granule)));
        }
    }
    Some(places)
}

fn remember(list: &mut Vec<Seen>, seen: Seen) {
    match list.iter_mut().find(|old| old.thread == seen.thread && old.event == seen.event) {
        Some(old) => old.number = seen.number,
        None => list.push(seen),
    }
}

impl Past {
    /// The last conflicting event of each other thread, by thread.
    fn before(&self, step: &Step) -> Vec<(ThreadId, u64)> {
        let mut last: Vec<(ThreadId, u64)> = Vec::new();
        let mut look = |seen: &Seen| {
            if seen.thread != step.thread && seen.event.conflicts(&step.event) {
                match last.iter_mut().find(|(thread, _)| *thread == seen.thread) {
                    Some((_, number)) => *number = (*number).max(seen.number),
                    None => last.push((seen.thread, seen.number)),
                }
            }
        };
        match places(&step.event) {
            Some(places) => {
                places.iter().filter_map(|place| self.places.get(place)).flatten().for_each(&mut look);
                self.wide.iter().for_each(look);
            }
            None => self.all.iter().for_each(look),
        }
        last.sort_unstable();
        last
    }

    fn add(&mut self, seen: Seen) {
        match places(&seen.event) {
            Some(places) => {
                for place in places {
                    remember(self.places.entry(place).or_default(), seen);
                }
            }
            None => remember(&mut self.wide, seen),
        }
        remember(&mut self.all, seen);
    }
}

impl Trace {
    /// Records one step.
    pub fn push(&mut self, thread: ThreadId, event: Event) {
        self.steps.push(Step { thread, event });
    }

    /// Who ran when.
    pub fn schedule(&self) -> Schedule {
        let mut schedule = Schedule::default();
        for step in &self.steps {
            schedule.push(step.thread, step.event.kind);
        }
        schedule
    }

    /// For each thread its events, each with the last conflicting event of every other thread before it.
    #[allow(clippy::type_complexity)]
    fn dependences(&self) -> HashMap<ThreadId, Vec<(Event, Vec<(ThreadId, u64)>)>> {
        let mut past = Past::default();
        let mut threads: HashMap<ThreadId, Vec<(Event, Vec<(ThreadId, u64)>)>> = HashMap::new();
        for step in &self.steps {
            let mine = threads.entry(step.thread).or_default();
            let number = mine.len() as u64;
            if step.event.is_local() {
                mine.push((step.event, Vec::new()));
                continue;
            }
            mine.push((step.event, past.before(step)));
            past.add(Seen { thread: step.thread, event: step.event, number });
        }
        threads
    }

    /// Whether the runs are the same up to commuting independent events.
    pub fn is_equivalent_to(&self, other: &Trace) -> bool {
        self.steps.len() == other.steps.len() && self.dependences() == other.dependences()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventKind;
    use proptest::prelude::*;

    fn step() -> impl Strategy<Value = Step> {
        use EventKind::*;
        let kinds =
            vec![PlainRead, PlainWrite, AtomicRmw, MutexLock, RwReadLock, CondWait, Yield, BlockingReturn];
        let object = prop_oneof![9 => 1u64..24, 1 => Just(u64::MAX)];
        let extent = prop_oneof![9 => 1u32..12, 1 => Just(1000u32)];
        (0u32..3, prop::sample::select(kinds), object, 0u64..24, extent).prop_map(
            |(thread, kind, object, also, extent)| Step {
                thread: ThreadId(thread),
                event: Event {
                    object: ObjectId(object),
                    also: if kind == CondWait { ObjectId(also) } else { ObjectId::NONE },
                    extent,
                    kind,
                    place: 0,
                },
            },
        )
    }

    /// The definition, pair by pair.
    fn same_by_definition(a: &Trace, b: &Trace) -> bool {
        let numbered = |trace: &Trace| {
            let mut counts = HashMap::new();
            let number = |step: &Step| {
                let count = counts.entry(step.thread).or_insert(0u64);
                *count += 1;
                (step.thread, *count, step.event)
            };
            trace.steps.iter().map(number).collect::<Vec<_>>()
        };
        let (a, b) = (numbered(a), numbered(b));
        let place = |step: &(ThreadId, u64, Event)| b.iter().position(|other| other == step);
        let places: Option<Vec<usize>> = a.iter().map(place).collect();
        let Some(places) = places else { return false };
        a.len() == b.len()
            && (0..a.len()).all(|i| {
                (i + 1..a.len()).all(|j| {
                    let ordered = a[i].0 == a[j].0 || a[i].2.conflicts(&a[j].2);
                    !ordered || places[i] < places[j]
                })
            })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// A trace and a shuffle of it by swaps of neighbours: equivalent exactly when the definition says so, and
        /// always when only independent neighbours were swapped.
        #[test]
        fn agrees_with_the_definition(
            steps in prop::collection::vec(step(), 0..14),
            swaps in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..8),
        ) {
            let one = Trace { steps };
            let mut other = one.clone();
            let mut only_independent = true;
            for (at, force) in swaps {
                if other.steps.len() < 2 {
                    break;
                }
                let at = at.index(other.steps.len() - 1);
                let (left, right) = (other.steps[at], other.steps[at + 1]);
                if left.thread == right.thread {
                    continue;
                }
                let dependent = left.event.conflicts(&right.event);
                if !dependent || force {
                    only_independent &= !dependent;
                    other.steps.swap(at, at + 1);
                }
            }
            prop_assert_eq!(one.is_equivalent_to(&other), same_by_definition(&one, &other));
            if only_independent {
                prop_assert!(one.is_equivalent_to(&other));
            }
        }
    }
}
