//! Which events of runs could be the two of an order that another build needed: those of the right threads, that do the right
//! things to something in common; pure.

use std::collections::BTreeMap;

use waylay_report::cause::{Constraint, EventPlace};
use waylay_schedule::{EventKind, ObjectId, ThreadId};

use super::likeness::can_be;
use crate::cause::places::Seen;
use crate::cause::trace::{Step, meet};

/// Distinct things that one thread does to one object which are compared with those of another.
const MOST_DEEDS: usize = 3_000;

/// What a thread does to an object, every time that it does.
#[derive(Clone, Debug)]
pub(crate) struct Deed {
    pub(crate) object: ObjectId,
    /// In the order of their numbers.
    pub(crate) steps: Vec<Step>,
}

/// Two deeds that meet.
#[derive(Clone, Debug)]
pub(crate) struct Meeting {
    pub(crate) first: Deed,
    pub(crate) then: Deed,
}

impl Meeting {
    /// What both touch: the narrower of the two.
    pub(crate) fn object(&self) -> ObjectId {
        self.first.object.max(self.then.object)
    }
}

/// Which thread is which thread of another build. Threads are numbered as they are created, so one more or one fewer in
/// front moves all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shift(pub(crate) i32);

impl Shift {
    pub(crate) const ALL: [Shift; 3] = [Shift(0), Shift(1), Shift(-1)];

    fn thread(self, thread: u32) -> Option<ThreadId> {
        match thread {
            0 => Some(ThreadId::MAIN),
            _ => thread.checked_add_signed(self.0).filter(|&moved| moved > 0).map(ThreadId),
        }
    }
}

/// Everything that could be the two events of a constraint.
pub(crate) fn meetings(runs: &[Seen], constraint: &Constraint, shift: Shift) -> Vec<Meeting> {
    let Constraint { first, then, .. } = constraint;
    let (Some(of_first), Some(of_then)) = (shift.thread(first.thread), shift.thread(then.thread)) else {
        return Vec::new();
    };
    let firsts = deeds(runs, of_first, &first.access);
    let thens = deeds(runs, of_then, &then.access);
    let pairs = firsts.iter().flat_map(|first| thens.iter().map(move |then| (first, then)));
    pairs
        .filter(|(first, then)| meet(&first.steps[0].event, &then.steps[0].event))
        .map(|(first, then)| Meeting { first: first.clone(), then: then.clone() })
        .collect()
}

/// Everything of a thread that could be one event, whatever it touches.
pub(crate) fn deeds_of(runs: &[Seen], event: &EventPlace) -> Vec<Deed> {
    deeds(runs, ThreadId(event.thread), &event.access)
}

fn deeds(runs: &[Seen], thread: ThreadId, access: &str) -> Vec<Deed> {
    let mut all: BTreeMap<(ObjectId, EventKind), BTreeMap<u32, Step>> = BTreeMap::new();
    for step in runs.iter().flat_map(|run| &run.trace.events) {
        if step.name.thread == thread && can_be(access, step.event.kind) {
            let deed = all.entry((step.event.object, step.event.kind)).or_default();
            deed.entry(step.name.occurrence).or_insert(*step);
        }
    }
    let deeds = all.into_iter().take(MOST_DEEDS);
    deeds.map(|((object, _), steps)| Deed { object, steps: steps.into_values().collect() }).collect()
}

#[cfg(test)]
mod tests {
    use waylay_schedule::ordered::Base;
    use waylay_schedule::{Event, Said};

    use super::*;
    use crate::cause::trace::Trace;

    fn seen(events: &[(u32, EventKind, u64)]) -> Seen {
        let event = |&(thread, kind, object): &(u32, EventKind, u64)| {
            let event = Event::access(kind, object, 4);
            [Said::Ready(ThreadId(thread), event), Said::Picked(Some(ThreadId(thread)))]
        };
        let said: Vec<Said> = events.iter().flat_map(event).collect();
        Seen { trace: Trace::of(&said), orders: Vec::new(), base: Base::Turns(Vec::new()) }
    }

    fn constraint(first: (u32, &str), then: (u32, &str)) -> Constraint {
        let event = |(thread, access): (u32, &str)| EventPlace {
            thread,
            access: access.to_owned(),
            ..EventPlace::default()
        };
        Constraint { first: event(first), then: event(then), object: "`x`".to_owned(), allocated: None }
    }

    #[test]
    fn what_two_threads_do_to_one_thing_is_paired_over_all_runs() {
        use EventKind::{PlainRead as R, PlainWrite as W};
        let runs =
            [seen(&[(1, R, 64), (2, W, 128)]), seen(&[(1, R, 64), (1, R, 64), (2, W, 64), (3, W, 64)])];
        let found = meetings(&runs, &constraint((1, "read"), (2, "write")), Shift(0));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].first.steps.len(), found[0].then.steps.len()), (2, 1));
        assert!(meetings(&runs, &constraint((2, "read"), (1, "write")), Shift(0)).is_empty());
        let moved = meetings(&runs, &constraint((1, "write"), (2, "write")), Shift(1));
        assert_eq!(moved.len(), 1, "threads 2 and 3");
    }
}
