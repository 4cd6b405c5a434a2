//! What happened in a run, event by event: kept while it goes on, without allocating, and named when it is over.
//!
//! Not responsible for what that means: which of the events could have come in another order is for [`orders`](crate::orders)
//! to say. What a run does beyond [`MOST`] events is not kept.

use std::collections::HashMap;

use crate::conversation::Said;
use crate::event::{Event, EventKind, ObjectId, ThreadId};
use crate::meeting::acts_before;
use crate::named::EventName;

/// Events of a run that are kept: many times what small tests have, and a quarter of a megabyte.
pub const MOST: usize = 1 << 13;

/// One thing that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    /// A thread exists; who made it.
    Spawned(ThreadId, Option<ThreadId>),
    /// A thread did this with a step of its own.
    Done(ThreadId, Event),
    /// A thread did this and then announced it.
    Early(ThreadId, Event),
    /// It made the step that it had announced so.
    Stepped(ThreadId),
}

/// A run as it goes on.
#[derive(Clone, Debug, Default)]
pub struct History {
    entries: Vec<Entry>,
    /// By thread: what it is about to do, and whether that has happened.
    next: Vec<Option<(Event, bool)>>,
    /// More happened than there is room for.
    full: bool,
}

/// One event of a run that is over.
#[derive(Clone, Copy, Debug)]
pub struct Happening {
    /// Its name.
    pub name: EventName,
    /// What it is.
    pub event: Event,
    /// The step with which it happens, which can be held back: its own, or the one before of its thread if it acts before it is
    /// announced. None when there is no such step.
    pub anchor: Option<EventName>,
    /// What its thread knew to be over: a place in [`Events::horizons`].
    era: u32,
}

/// The events of a run that is over.
#[derive(Clone, Debug, Default)]
pub struct Events {
    /// In the order in which they happened.
    pub all: Vec<Happening>,
    /// By thread, how many of all events are over for certain when a thread that was created, or has joined others, goes on.
    horizons: Vec<Vec<u32>>,
}

impl History {
    /// Forgets the run before.
    pub fn begin(&mut self) {
        self.entries.clear();
        self.entries.reserve(MOST);
        self.next.clear();
        self.full = false;
    }

    fn push(&mut self, entry: Entry) {
        if self.entries.len() < MOST {
            self.entries.push(entry);
        } else {
            self.full = true;
        }
    }

    /// A thread exists.
    pub fn spawned(&mut self, thread: ThreadId, parent: Option<ThreadId>) {
        if self.next.len() <= thread.index() {
            self.next.resize(thread.index() + 1, None);
        }
        self.push(Entry::Spawned(thread, parent));
    }

    /// A thread is about to do this.
    pub fn ready(&mut self, thread: ThreadId, next: Event) {
        if self.next.len() <= thread.index() {
            self.next.resize(thread.index() + 1, None);
        }
        let early = acts_before(next.kind);
        let known = self.next[thread.index()].is_some_and(|(known, _)| known == next);
        if early && !known {
            self.push(Entry::Early(thread, next));
        }
        self.next[thread.index()] = Some((next, early));
    }

    /// A thread was picked.
    pub fn picked(&mut self, thread: ThreadId) {
        match self.next.get_mut(thread.index()).and_then(Option::take) {
            Some((_, true)) => self.push(Entry::Stepped(thread)),
            Some((event, false)) => self.push(Entry::Done(thread, event)),
            None => {}
        }
    }

    /// A thread is gone.
    pub fn finished(&mut self, thread: ThreadId) {
        self.next.get_mut(thread.index()).and_then(Option::take);
    }

    /// Takes in what was said in a run that went on elsewhere.
    pub fn hear(&mut self, said: &[Said]) {
        self.begin();
        said.iter().for_each(|&said| self.hear_one(said));
    }

    /// Takes in one sentence of a run.
    pub fn hear_one(&mut self, said: Said) {
        match said {
            Said::Spawned(thread, parent) => self.spawned(thread, parent),
            Said::Ready(thread, event) => self.ready(thread, event),
            Said::Picked(Some(thread)) => self.picked(thread),
            Said::Finished(thread) => self.finished(thread),
            Said::Blocked(_) | Said::Picked(None) => {}
        }
    }

    /// Whether more happened than is kept.
    pub fn is_cut(&self) -> bool {
        self.full
    }

    /// The events by name.
    pub fn events(&self) -> Events {
        let mut counts: HashMap<(ThreadId, EventKind, ObjectId), u32> = HashMap::new();
        let mut name = |thread: ThreadId, event: &Event| {
            let count = counts.entry((thread, event.kind, event.object)).or_default();
            *count += 1;
            EventName { thread, kind: event.kind, object: event.object, occurrence: *count, place: 0 }
        };
        // By thread: the last step, the last event that acted before its step, and the era.
        let mut last: Vec<Option<EventName>> = vec![None; self.next.len()];
        let mut early: Vec<Option<EventName>> = vec![None; self.next.len()];
        let mut eras: Vec<u32> = vec![0; self.next.len()];
        let mut events = Events { all: Vec::with_capacity(self.entries.len()), horizons: vec![Vec::new()] };
        for entry in &self.entries {
            match *entry {
                Entry::Spawned(thread, parent) => {
                    if let Some(parent) = parent.filter(|parent| parent.index() < eras.len()) {
                        let horizon = events.beyond(eras[parent.index()], parent);
                        eras[thread.index()] = events.era(horizon);
                    }
                }
                Entry::Done(thread, event) => {
                    let name = name(thread, &event);
                    last[thread.index()] = Some(name);
                    let era = eras[thread.index()];
                    events.all.push(Happening { name, event, anchor: Some(name), era });
                    let joined = (event.kind == EventKind::ThreadJoin)
                        .then(|| ThreadId((event.object.0 as u32).wrapping_sub(1)))
                        .filter(|joined| joined.index() < eras.len() && *joined != thread);
                    if let Some(joined) = joined {
                        let mut horizon = events.beyond(eras[joined.index()], joined);
                        let mine = &events.horizons[era as usize];
                        let threads = horizon.len().max(mine.len());
                        horizon.resize(threads, 0);
                        horizon
                            .iter_mut()
                            .zip(mine)
                            .for_each(|(theirs, mine)| *theirs = (*theirs).max(*mine));
                        eras[thread.index()] = events.era(horizon);
                    }
                }
                Entry::Early(thread, event) => {
                    let name = name(thread, &event);
                    early[thread.index()] = Some(name);
                    let (anchor, era) = (last[thread.index()], eras[thread.index()]);
                    events.all.push(Happening { name, event, anchor, era });
                }
                Entry::Stepped(thread) => last[thread.index()] = early[thread.index()],
            }
        }
        events
    }
}

impl Events {
    /// What is over when everything is that a thread has done so far and knew to be.
    fn beyond(&self, era: u32, thread: ThreadId) -> Vec<u32> {
        let mut horizon = self.horizons[era as usize].clone();
        horizon.resize(horizon.len().max(thread.index() + 1), 0);
        horizon[thread.index()] = self.all.len() as u32;
        horizon
    }

    fn era(&mut self, horizon: Vec<u32>) -> u32 {
        self.horizons.push(horizon);
        self.horizons.len() as u32 - 1
    }

    /// Whether the first of two events comes before the second in every schedule, because a thread is created after it, or
    /// joined before it. `first` is the place of one that came earlier.
    pub fn is_settled(&self, first: usize, then: usize) -> bool {
        let horizon = &self.horizons[self.all[then].era as usize];
        let over = horizon.get(self.all[first].name.thread.index()).copied().unwrap_or(0);
        first < over as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_before_a_thread_is_created_or_after_it_is_joined_is_settled() {
        let (main, one, two) = (ThreadId(0), ThreadId(1), ThreadId(2));
        let write = Event::access(EventKind::PlainWrite, 8, 4);
        let mut history = History::default();
        history.begin();
        history.spawned(main, None);
        let step = |history: &mut History, thread, event| {
            history.ready(thread, event);
            history.picked(thread);
        };
        step(&mut history, main, write);
        history.spawned(one, Some(main));
        step(&mut history, main, write);
        history.spawned(two, Some(one));
        step(&mut history, one, write);
        step(&mut history, two, write);
        step(&mut history, main, Event::on_thread(EventKind::ThreadJoin, one));
        step(&mut history, main, write);
        let events = history.events();
        assert_eq!(events.all.len(), 6);
        let settled = |first, then| events.is_settled(first, then);
        assert!(settled(0, 2) && settled(0, 3), "before they were created");
        assert!(!settled(1, 2) && !settled(1, 3) && !settled(2, 3));
        assert!(settled(2, 5) && !settled(3, 5), "joined, and not joined");
    }
}
