//! Which orders of two events, and which chains of two such orders, a run showed, and which others it says are possible.
//!
//! An order is about places in the code: an event at one was followed by an event of another thread at the other that touches
//! the same thing, one of the two changes it, and nothing came in between that touches it in conflict with both. So it is a
//! dependence: write to read, read to write, or write to write. These are idiom 1 of "Maple: A Coverage-Driven Testing Tool for
//! Multithreaded Programs" (Yu, Narayanasamy, Pereira and Pokam, OOPSLA 2012). A chain is one thread's event, one of another
//! thread, and one of the first thread again, each next to the one before: idioms 2 and 3 there.
//!
//! Predicted are, for every two events of a run that meet, both orders, unless the creation or the joining of a thread settles
//! one. Locks, conditions and values may rule out more: what is predicted is no less than what is possible, among the events
//! that were seen.
//!
//! Where the code of an event is not known (calls of a library), what it does to what in which thread stands for its place.

use std::collections::{BTreeMap, HashMap};

use crate::event::{Access, Event, EventKind, ObjectId, Space, ThreadId};
use crate::happened::Events;
use crate::meeting::{is_free, meet};
use crate::named::Order;

/// Bytes that share a list.
const GRANULE: u64 = 8;
/// Bytes of one access that are looked at: blocks of memory that are freed may be of any size.
const WIDEST: u64 = 1024;
/// Events on one thing before another, or behind it, that are looked at.
const MOST_BACK: usize = 64;
/// Events on one thing of which every two are compared, and orders of one run that are taken to be possible: what a run is
/// looked through for must not take longer than the run.
const MOST_ON_ONE: usize = 48;
const MOST_PREDICTED: usize = 4096;
/// Times that one thread does one thing at one place of which each is taken to be possible elsewhere: these, and the last.
const MOST_TIMES: usize = 2;

/// A place in the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// Known by its address.
    Code(EventKind, u16),
    /// Known by who does what to what.
    Deed(EventKind, ThreadId, ObjectId),
}

impl Place {
    /// Where an event of a thread is.
    pub fn of(thread: ThreadId, event: &Event) -> Place {
        match event.place {
            0 => Place::Deed(event.kind, thread, event.object),
            place => Place::Code(event.kind, place),
        }
    }
}

/// Places whose events come one after the other: two, or three for a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Idiom {
    /// One order.
    Pair([Place; 2]),
    /// Two: the first and the last event are of one thread.
    Chain([Place; 3]),
}

/// What a run says about orders.
#[derive(Clone, Debug, Default)]
pub struct Orders {
    /// Those that it showed.
    pub seen: Vec<Idiom>,
    /// Those that are possible with its events, and the steps to be held back for each; those that it showed are among them.
    pub predicted: Vec<(Idiom, Vec<Order>)>,
}

/// The parts of memory, or the name, that an event touches.
fn keys(event: &Event) -> impl Iterator<Item = (u8, u64)> {
    let object = event.object.0;
    let (space, first, last) = match event.kind.space() {
        Space::Address => {
            let bytes = u64::from(event.extent.max(1)).min(WIDEST);
            (0, object / GRANULE, object.saturating_add(bytes - 1) / GRANULE)
        }
        Space::Thread => (1, object, object),
        Space::User => (2, object, object),
    };
    (first..=last).map(move |key| (space, key))
}

impl Orders {
    /// What the events of a run say.
    pub fn of(events: &Events) -> Orders {
        let all = &events.all;
        let mut lists: BTreeMap<(u8, u64), Vec<usize>> = BTreeMap::new();
        for (index, happening) in all.iter().enumerate() {
            let event = &happening.event;
            let named = event.object != ObjectId::UNKNOWN && event.object != ObjectId::NONE;
            if named && is_free(event.kind) && !event.is_local() {
                keys(event).for_each(|key| lists.entry(key).or_default().push(index));
            }
        }
        // What is touched first comes first: addresses differ from process to process, and what is learned must not.
        let mut by_object: Vec<Vec<usize>> = lists.into_values().collect();
        by_object.sort_by_key(|list| list[0]);
        let place = |index: usize| Place::of(all[index].name.thread, &all[index].event);
        let edges = edges(events, &by_object);
        let mut seen: Vec<Idiom> =
            edges.iter().map(|&(first, then)| Idiom::Pair([place(first), place(then)])).collect();
        for &(first, middle) in &edges {
            let from = edges.partition_point(|&(start, _)| start < middle);
            let onward = edges[from..].iter().take_while(|&&(start, _)| start == middle);
            for &(_, last) in onward.filter(|&&(_, last)| all[last].name.thread == all[first].name.thread) {
                seen.push(Idiom::Chain([place(first), place(middle), place(last)]));
            }
        }
        seen.sort_unstable();
        seen.dedup();
        Orders { seen, predicted: predicted(events, &by_object, place) }
    }
}

/// Events that depend on each other directly, sorted.
fn edges(events: &Events, by_object: &[Vec<usize>]) -> Vec<(usize, usize)> {
    let all = &events.all;
    let mut edges = Vec::new();
    let mut between: Vec<usize> = Vec::new();
    for list in by_object {
        for (at, &then) in list.iter().enumerate() {
            between.clear();
            let event = &all[then].event;
            for &first in list[..at].iter().rev().take(MOST_BACK) {
                let before = &all[first].event;
                if !meet(before, event) {
                    continue;
                }
                let direct = !between.iter().any(|&other| meet(&all[other].event, before));
                let apart = all[first].name.thread != all[then].name.thread;
                if direct && apart && !events.is_settled(first, then) {
                    edges.push((first, then));
                }
                between.push(first);
                if covers(before, event) {
                    break;
                }
            }
        }
    }
    edges.sort_unstable();
    edges.dedup();
    edges
}

/// Whether an event changes all that another touches: what came before it, and meets the other, meets it, too.
fn covers(one: &Event, other: &Event) -> bool {
    let end = |event: &Event| event.object.0.saturating_add(u64::from(event.extent.max(1)));
    one.kind.access() == Access::Write && one.object <= other.object && end(one) >= end(other)
}

/// Every two events that meet, either way round, and with one of them between the other and what its thread does next to the
/// same thing.
fn predicted(
    events: &Events,
    by_object: &[Vec<usize>],
    place: impl Fn(usize) -> Place,
) -> Vec<(Idiom, Vec<Order>)> {
    let all = &events.all;
    let mut found = Vec::new();
    let held = |first: usize, then: usize| Some(Order { first: all[first].anchor?, then: all[then].anchor? });
    for list in by_object {
        if found.len() >= MOST_PREDICTED {
            break;
        }
        let few = few_of_each(events, list);
        // The next event of its thread that meets another.
        let next = |of: usize, other: usize| {
            let from = list.partition_point(|&index| index <= of);
            list[from..].iter().copied().take(MOST_BACK).find(|&index| {
                all[index].name.thread == all[of].name.thread && meet(&all[index].event, &all[other].event)
            })
        };
        for (at, &then) in few.iter().enumerate() {
            for &first in &few[..at] {
                let apart = all[first].name.thread != all[then].name.thread;
                if !apart || !meet(&all[first].event, &all[then].event) || events.is_settled(first, then) {
                    continue;
                }
                for (one, other) in [(first, then), (then, first)] {
                    let Some(order) = held(one, other) else { continue };
                    found.push((Idiom::Pair([place(one), place(other)]), vec![order]));
                    if let Some(last) = next(one, other)
                        && let Some(onward) = held(other, last)
                        && !events.is_settled(last.min(other), last.max(other))
                    {
                        let chain = Idiom::Chain([place(one), place(other), place(last)]);
                        found.push((chain, vec![order, onward]));
                    }
                }
            }
        }
    }
    found
}

/// The first events of each thread at each place, and the last.
fn few_of_each(events: &Events, list: &[usize]) -> Vec<usize> {
    let mut times: HashMap<(ThreadId, Place), Vec<usize>> = HashMap::new();
    for &index in list {
        let happening = &events.all[index];
        let thread = happening.name.thread;
        let times = times.entry((thread, Place::of(thread, &happening.event))).or_default();
        if times.len() > MOST_TIMES {
            times.pop();
        }
        times.push(index);
    }
    let mut few: Vec<usize> = times.into_values().flatten().collect();
    few.sort_unstable();
    few.truncate(MOST_ON_ONE);
    few
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::happened::History;
    use EventKind::{PlainRead as R, PlainWrite as W};

    fn orders(events: &[(u32, EventKind, u16)]) -> Orders {
        let mut history = History::default();
        history.begin();
        for thread in [ThreadId(0), ThreadId(1)] {
            history.spawned(thread, None);
        }
        for &(thread, kind, place) in events {
            history.ready(ThreadId(thread), Event::access(kind, 64, 4).at(place.into()));
            history.picked(ThreadId(thread));
        }
        Orders::of(&history.events())
    }

    fn pair(first: (EventKind, u16), then: (EventKind, u16)) -> Idiom {
        Idiom::Pair([first, then].map(|(kind, place)| Place::Code(kind, place)))
    }

    #[test]
    fn a_lost_update_shows_other_orders_than_one_update_after_the_other() {
        let apart = orders(&[(0, R, 1), (0, W, 2), (1, R, 1), (1, W, 2)]);
        assert_eq!(apart.seen, [pair((W, 2), (R, 1))]);
        let lost = orders(&[(0, R, 1), (1, R, 1), (0, W, 2), (1, W, 2)]);
        let chain = Idiom::Chain([(R, 1), (W, 2), (W, 2)].map(|(kind, place)| Place::Code(kind, place)));
        assert_eq!(lost.seen, [pair((R, 1), (W, 2)), pair((W, 2), (W, 2)), chain]);
        let mut possible: Vec<Idiom> = apart.predicted.iter().map(|(idiom, _)| *idiom).collect();
        possible.sort_unstable();
        possible.dedup();
        for wanted in lost.seen.iter().chain(&apart.seen) {
            assert!(possible.contains(wanted), "{wanted:?}");
        }
    }
}
