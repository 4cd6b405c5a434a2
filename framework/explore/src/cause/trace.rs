//! What happened in a run, event by event, and which two of them could matter to each other.

use std::collections::HashMap;

pub(crate) use waylay_schedule::meeting::{acts_before, is_free, meet};
use waylay_schedule::ordered::{EventName, LastLook, Order};
use waylay_schedule::{Event, EventKind, ObjectId, Said, ThreadId};

/// Steps of a run that are looked at, from its end: what decides is near the failure.
const MOST_STEPS: usize = 20_000;
/// Bytes that share a place in the table of accesses.
const GRANULE: u64 = 8;
/// An access that is longer is compared with all others: there are few.
const WIDE: u32 = 64;
/// Events of one thread between the two of a pair that are looked at.
const MOST_BETWEEN: usize = 1_000;

/// One event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) name: EventName,
    pub(crate) event: Event,
    /// The step with which it happens: its own, or the one before of its thread, see [`acts_before`]. None when there is none.
    anchor: Option<EventName>,
    /// The number of that step in the run.
    pub(crate) at: u64,
}

/// Two events in an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Pair {
    /// They, as they are spoken of.
    pub(crate) shown: Order,
    /// The steps with which they happen, which can be held back.
    pub(crate) held: Order,
}

impl Pair {
    /// Two events; none when one of them happens with no step.
    pub(crate) fn of(first: &Step, then: &Step) -> Option<Pair> {
        Some(Pair {
            shown: Order { first: first.name, then: then.name },
            held: Order { first: first.anchor?, then: then.anchor? },
        })
    }

    /// The other way round.
    pub(crate) fn reversed(self) -> Pair {
        Pair { shown: self.shown.reversed(), held: self.held.reversed() }
    }
}

/// A run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    /// What happened, in the order in which it did.
    pub(crate) events: Vec<Step>,
    /// What threads were about to do when it ended.
    pub(crate) pending: Vec<Step>,
    /// Who made each step.
    pub(crate) threads: Vec<ThreadId>,
    places: HashMap<EventName, usize>,
}

impl Trace {
    /// A run whose events are named wherever they are.
    pub(crate) fn of(said: &[Said]) -> Trace {
        Trace::named(said, false)
    }

    /// A run whose events are named by their places: looks that a thread repeats while it waits are one.
    pub(crate) fn placed(said: &[Said]) -> Trace {
        Trace::named(said, true)
    }

    fn named(said: &[Said], placed: bool) -> Trace {
        let mut next: Vec<Option<(Event, bool)>> = Vec::new();
        let mut last: Vec<Option<EventName>> = Vec::new();
        let mut counts: HashMap<(ThreadId, EventKind, ObjectId, u16), u32> = HashMap::new();
        let mut looked: HashMap<ThreadId, LastLook> = HashMap::new();
        let mut trace = Trace::default();
        let mut name = |thread: ThreadId, event: &Event, done: bool| {
            let place = if placed { event.place } else { 0 };
            let count = counts.entry((thread, event.kind, event.object, place)).or_default();
            let looked = looked.entry(thread).or_default();
            let mut name =
                EventName { thread, kind: event.kind, object: event.object, occurrence: *count + 1, place };
            if name.is_folded() && looked.is_repeated(event) {
                name.occurrence = *count;
            }
            if done {
                *count = name.occurrence;
                looked.does(event);
            }
            name
        };
        for sentence in said {
            match *sentence {
                Said::Ready(thread, event) => {
                    if next.len() <= thread.index() {
                        next.resize(thread.index() + 1, None);
                        last.resize(thread.index() + 1, None);
                    }
                    let known = next[thread.index()].is_some_and(|(known, _)| known == event);
                    let early = acts_before(event.kind);
                    if early && !known {
                        let name = name(thread, &event, true);
                        let at = (trace.threads.len() as u64).saturating_sub(1);
                        trace.add(Step { name, event, anchor: last[thread.index()], at });
                    }
                    next[thread.index()] = Some((event, early));
                }
                // What a thread without an announced event does is a step all the same.
                Said::Picked(Some(thread)) => {
                    let at = trace.threads.len() as u64;
                    trace.threads.push(thread);
                    let Some((event, early)) = next.get_mut(thread.index()).and_then(Option::take) else {
                        continue;
                    };
                    if !early {
                        let name = name(thread, &event, true);
                        last[thread.index()] = Some(name);
                        trace.add(Step { name, event, anchor: Some(name), at });
                    } else {
                        let next = name(thread, &event, false);
                        last[thread.index()] = Some(EventName { occurrence: next.occurrence - 1, ..next });
                    }
                }
                Said::Finished(thread) => {
                    next.get_mut(thread.index()).and_then(Option::take);
                }
                Said::Spawned(..) | Said::Blocked(_) | Said::Picked(None) => {}
            }
        }
        let at = trace.threads.len() as u64;
        for (thread, event) in next.into_iter().enumerate() {
            if let Some((event, false)) = event {
                let name = name(ThreadId(thread as u32), &event, false);
                trace.pending.push(Step { name, event, anchor: Some(name), at });
            }
        }
        trace
    }

    /// Every time that the thread of an event did the same to the same, wherever that was, up to the event itself; nothing when
    /// it did not happen.
    pub(crate) fn times(&self, name: &EventName) -> Vec<EventName> {
        let end = self.place(name).map_or(0, |place| place + 1);
        let is_like = |other: &EventName| {
            (other.thread, other.kind, other.object) == (name.thread, name.kind, name.object)
        };
        self.events[..end].iter().map(|step| step.name).filter(is_like).collect()
    }

    fn add(&mut self, step: Step) {
        self.places.insert(step.name, self.events.len());
        self.events.push(step);
    }

    /// The step of the run with which an event happened.
    pub(crate) fn step(&self, name: &EventName) -> Option<u64> {
        self.place(name).map(|place| self.events[place].at)
    }

    /// What an event is, if it happened.
    pub(crate) fn event(&self, name: &EventName) -> Option<&Event> {
        self.place(name).map(|place| &self.events[place].event)
    }

    /// The how manieth an event was.
    pub(crate) fn place(&self, name: &EventName) -> Option<usize> {
        self.places.get(name).copied()
    }

    /// Whether nothing speaks against an order: the second event came after the first, or not at all.
    pub(crate) fn keeps(&self, pair: &Pair) -> bool {
        let order = &pair.shown;
        match (self.place(&order.first), self.place(&order.then)) {
            (Some(first), Some(then)) => first < then,
            (None, Some(_)) => false,
            (_, None) => true,
        }
    }

    /// Whether both events happened, and the other way round.
    pub(crate) fn breaks(&self, pair: &Pair) -> bool {
        self.place(&pair.shown.first).is_some() && !self.keeps(pair)
    }

    /// Whether an order was seen: the first event happened, and the second not before it.
    pub(crate) fn shows(&self, pair: &Pair) -> bool {
        self.place(&pair.shown.first).is_some() && self.keeps(pair)
    }
}

/// The events that a failing run and what would have come after it have, by what they touch.
pub(crate) struct Meetings {
    steps: Vec<Step>,
    /// From here on the failing run did not get.
    reached: usize,
    by_place: HashMap<u64, Vec<usize>>,
    wide: Vec<usize>,
}

impl Meetings {
    /// `passing`: a run that did not fail, which tells what would have come.
    pub(crate) fn new(failing: &Trace, passing: &Trace) -> Meetings {
        let skipped = failing.events.len().saturating_sub(MOST_STEPS);
        // Of looks that are one event the last one saw something else.
        let is_last = |of: &Trace, place: usize, step: &Step| of.place(&step.name) == Some(place);
        let events = failing.events.iter().enumerate().skip(skipped);
        let mut steps: Vec<Step> =
            events.filter(|(place, step)| is_last(failing, *place, step)).map(|(_, step)| *step).collect();
        let reached = steps.len();
        let missed = |step: &&Step| failing.place(&step.name).is_none();
        steps.extend(failing.pending.iter().filter(missed));
        let known: Vec<EventName> = failing.pending.iter().map(|step| step.name).collect();
        let later = passing.events.iter().enumerate().filter(|(place, step)| is_last(passing, *place, step));
        let later = later.map(|(_, step)| step).filter(missed).filter(|step| !known.contains(&step.name));
        steps.extend(later.take(MOST_STEPS));
        let mut by_place: HashMap<u64, Vec<usize>> = HashMap::new();
        let mut wide = Vec::new();
        for (index, step) in steps.iter().enumerate() {
            if !is_free(step.event.kind) || step.event.is_local() {
                continue;
            }
            let (object, extent) = (step.event.object.0, step.event.extent.max(1));
            if extent > WIDE {
                wide.push(index);
                continue;
            }
            for place in object / GRANULE..=object.saturating_add(u64::from(extent) - 1) / GRANULE {
                by_place.entry(place).or_default().push(index);
            }
        }
        Meetings { steps, reached, by_place, wide }
    }

    /// Pairs of which nothing lies between: the first is the last of its thread that meets the second, and the second the
    /// first of its thread that meets the first. Those that come last in the run are first.
    pub(crate) fn closest(&self) -> Vec<Pair> {
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        let mut lists: Vec<Vec<usize>> = self.by_place.values().cloned().collect();
        for &index in &self.wide {
            let Step { event, .. } = self.steps[index];
            let others = self.by_place.iter().filter(|(place, _)| {
                (event.object.0 / GRANULE..=event.object.0.saturating_add(u64::from(event.extent)) / GRANULE)
                    .contains(place)
            });
            for (_, list) in others {
                let mut list = list.clone();
                list.push(index);
                list.sort_unstable();
                lists.push(list);
            }
        }
        for list in &lists {
            for (place, &then) in list.iter().enumerate() {
                let mut met: Vec<ThreadId> = Vec::new();
                let of_then = self.steps[then].name.thread;
                for &first in list[..place].iter().rev().take(MOST_BETWEEN) {
                    let of_first = self.steps[first].name.thread;
                    if of_first == of_then || met.contains(&of_first) || !self.meets(first, then) {
                        continue;
                    }
                    met.push(of_first);
                    let nearer =
                        list[..place].iter().rev().take_while(|&&between| between > first).any(|&between| {
                            self.steps[between].name.thread == of_then && self.meets(first, between)
                        });
                    if !nearer && first < self.reached {
                        pairs.push((then, first));
                    }
                }
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        pairs.into_iter().rev().filter_map(|(then, first)| self.pair(first, then)).collect()
    }

    /// The pairs next to one, which ask for less: with the event before its first, or the one behind its second; and those that
    /// ask for least, with the first or the last such event.
    pub(crate) fn looser(&self, pair: &Pair) -> Vec<Pair> {
        let order = &pair.shown;
        let find = |name: &EventName| self.steps.iter().position(|step| step.name == *name);
        let (Some(first), Some(then)) = (find(&order.first), find(&order.then)) else { return Vec::new() };
        let (of_first, of_then) = (order.first.thread, order.then.thread);
        let is_before = |index: &usize| {
            self.steps[*index].name.thread == of_first && self.free(*index) && self.meets(*index, then)
        };
        let is_behind = |index: &usize| {
            self.steps[*index].name.thread == of_then && self.free(*index) && self.meets(first, *index)
        };
        let (before, behind) = (0..first, then + 1..self.steps.len());
        let firsts = [before.clone().rev().take(MOST_STEPS).find(is_before), before.clone().find(is_before)];
        let lasts = [behind.clone().find(is_behind), behind.rev().take(MOST_STEPS).find(is_behind)];
        let firsts = firsts.into_iter().flatten().filter_map(|before| self.pair(before, then));
        let lasts = lasts.into_iter().flatten().filter_map(|behind| self.pair(first, behind));
        let mut pairs: Vec<Pair> = firsts.chain(lasts).collect();
        pairs.dedup();
        pairs
    }

    fn free(&self, index: usize) -> bool {
        is_free(self.steps[index].event.kind)
    }

    fn meets(&self, one: usize, other: usize) -> bool {
        meet(&self.steps[one].event, &self.steps[other].event)
    }

    fn pair(&self, first: usize, then: usize) -> Option<Pair> {
        Pair::of(&self.steps[first], &self.steps[then])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use EventKind::{PlainRead as R, PlainWrite as W};

    fn said(events: &[(u32, EventKind, u64)]) -> Vec<Said> {
        let event = |&(thread, kind, object): &(u32, EventKind, u64)| {
            let event = Event::access(kind, object, 4);
            [Said::Ready(ThreadId(thread), event), Said::Picked(Some(ThreadId(thread)))]
        };
        events.iter().flat_map(event).collect()
    }

    fn name(thread: u32, kind: EventKind, object: u64, occurrence: u32) -> EventName {
        EventName { thread: ThreadId(thread), kind, object: ObjectId(object), occurrence, place: 0 }
    }

    #[test]
    fn of_a_lost_update_the_pairs_are_those_that_lie_side_by_side() {
        let failing = Trace::of(&said(&[(1, R, 64), (2, R, 64), (2, W, 64), (1, W, 64), (1, R, 128)]));
        let mut pairs = Meetings::new(&failing, &Trace::default()).closest();
        pairs.sort_unstable();
        let order = |first, then| Pair { shown: Order { first, then }, held: Order { first, then } };
        let (r1, r2) = (name(1, R, 64, 1), name(2, R, 64, 1));
        let (w1, w2) = (name(1, W, 64, 1), name(2, W, 64, 1));
        let mut expected = [order(r1, w2), order(r2, w1), order(w2, w1)];
        expected.sort_unstable();
        // `r2 < w1` has `w2` between, which does not meet `r2`: both are of one thread.
        assert_eq!(pairs, [order(r1, w2), order(w2, w1)]);
        assert!(expected.iter().all(|order| failing.shows(order) && !failing.keeps(&order.reversed())));
    }

    #[test]
    fn looks_that_are_repeated_are_one_event_and_places_count_by_themselves() {
        let at = |thread, kind, place: u16| {
            let event = Event::access(kind, 64, 4).at(place.into());
            [Said::Ready(ThreadId(thread), event), Said::Picked(Some(ThreadId(thread)))]
        };
        let said =
            [at(1, R, 5), at(1, R, 5), at(2, W, 9), at(1, R, 5), at(1, R, 6), at(1, W, 9), at(1, R, 5)]
                .concat();
        let placed = Trace::placed(&said);
        let look = EventName { place: 5, ..name(1, R, 64, 1) };
        assert_eq!(placed.place(&look), Some(3), "the last of three");
        assert_eq!(placed.place(&EventName { place: 6, ..look }), Some(4));
        assert_eq!(placed.place(&EventName { occurrence: 2, ..look }), Some(6));
        assert_eq!(placed.times(&EventName { place: 6, ..look }).len(), 4);
        let pairs = Meetings::new(&placed, &Trace::default()).closest();
        assert!(pairs.iter().all(|pair| placed.shows(pair)), "{pairs:?}");
        assert_eq!(Trace::of(&said).place(&name(1, R, 64, 3)), Some(3));
    }

    #[test]
    fn what_a_run_did_not_come_to_is_taken_from_one_that_passed() {
        let failing = Trace::of(&said(&[(1, R, 64)]));
        let passing = Trace::of(&said(&[(0, W, 64), (1, R, 64)]));
        let pairs = Meetings::new(&failing, &passing).closest();
        let order = Order { first: name(1, R, 64, 1), then: name(0, W, 64, 1) };
        let order = Pair { shown: order, held: order };
        assert_eq!(pairs, [order]);
        assert!(failing.shows(&order) && !passing.keeps(&order));
    }

    #[test]
    fn who_wakes_others_does_so_before_it_is_announced() {
        use EventKind::{CondSignal, CondWait};
        let (main, other) = (ThreadId(0), ThreadId(1));
        let signal = Event::new(CondSignal, ObjectId(8));
        let mut all = said(&[(0, W, 64)]);
        // The wait is picked before the signal is, and comes too late all the same.
        all.extend([Said::Ready(main, signal), Said::Ready(main, signal)]);
        all.extend([Said::Ready(other, Event::new(CondWait, ObjectId(8))), Said::Picked(Some(other))]);
        all.push(Said::Picked(Some(main)));
        let failing = Trace::of(&all);
        let shown = Order { first: name(0, CondSignal, 8, 1), then: name(1, CondWait, 8, 1) };
        let held = Order { first: name(0, W, 64, 1), then: shown.then };
        assert_eq!(Meetings::new(&failing, &Trace::default()).closest(), [Pair { shown, held }]);
        assert_eq!((failing.threads.len(), failing.step(&shown.first)), (3, Some(0)));
    }
}
