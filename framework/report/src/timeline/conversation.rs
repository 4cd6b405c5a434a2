//! A timeline from what a strategy was told and answered: who was about to do what, who was blocked, who ran.
//!
//! The step that a thread makes when it is picked is the event that it last said it was about to do. Locks are what
//! `mutex-lock` and its kin take and `mutex-unlock` and its kin give back; a lock made of atomics and futexes alone shows
//! as those. A lock is given back before the step is announced that says so, because who waits for it may go on first.

use std::collections::{HashMap, VecDeque};

use waylay_schedule::conversation::Said;
use waylay_schedule::{Event, EventKind, ObjectId, ThreadId};

use super::names::{Names, Variables};
use super::waiting::{self, Loops};
use super::{Doing, Failing, Held, NO_OBJECT, Span, StepWords, SwitchPoint, Timeline, Unit};

/// What is known about a thread while its story is told.
#[derive(Clone, Debug)]
struct Thread {
    /// What it is about to do, or did last.
    next: Option<Event>,
    /// Whether it did it.
    done: bool,
    doing: Doing,
    since: u64,
    label: String,
    over: bool,
}

struct Story<'a> {
    timeline: Timeline,
    threads: Vec<Thread>,
    names: Names,
    variables: Variables<'a>,
    /// Places of locks in [`Timeline::locks`], by address.
    locks: HashMap<u64, usize>,
    /// Who holds what since when.
    holding: Vec<(usize, usize, u64)>,
    ran: Option<usize>,
    step: u64,
    steps: VecDeque<StepWords>,
    loops: Loops,
}

/// Steps that are kept in words.
const LAST_STEPS: usize = 80;

/// Whether a thread that did this may be waiting in it.
fn waits(kind: EventKind) -> bool {
    use EventKind::*;
    matches!(kind, ThreadJoin | CondWait | SemWait | BarrierWait | FutexWait | Park | Sleep | Once)
}

/// What a conversation tells.
#[derive(Clone, Debug)]
pub struct Told {
    /// Who ran when.
    pub timeline: Timeline,
    /// What its objects are called.
    pub names: Names,
    /// What each thread did in the end, and what it waits for or is about to do; none of one that is over.
    pub ends: Vec<Option<(Doing, String)>>,
}

/// The timeline of a run that ended in `what`. None when nothing was said.
pub fn timeline(title: &str, said: &[Said], what: &str, variables: Variables<'_>) -> Option<Told> {
    let mut story = Story {
        timeline: Timeline::new(title, Unit::Steps),
        threads: Vec::new(),
        names: Names::default(),
        variables,
        locks: HashMap::new(),
        holding: Vec::new(),
        ran: None,
        step: 0,
        steps: VecDeque::new(),
        loops: Loops::default(),
    };
    for sentence in said {
        match *sentence {
            Said::Spawned(thread, parent) => story.spawned(thread, parent),
            Said::Ready(thread, event) => story.ready(thread, event),
            Said::Blocked(thread) => story.blocked(thread),
            Said::Finished(thread) => story.finished(thread),
            Said::Picked(Some(thread)) => story.picked(thread),
            Said::Picked(None) => {}
        }
    }
    (story.step > 0).then(|| story.end(what))
}

impl Story<'_> {
    fn lane(&mut self, thread: ThreadId) -> usize {
        let lane = thread.index();
        while self.threads.len() <= lane {
            let name = format!("thread {}", self.threads.len());
            self.timeline.lanes.push(name);
            self.threads.push(Thread {
                next: None,
                done: false,
                doing: Doing::Ready,
                since: self.step,
                label: String::new(),
                over: true,
            });
        }
        lane
    }

    fn spawned(&mut self, thread: ThreadId, parent: Option<ThreadId>) {
        let lane = self.lane(thread);
        let label = parent.map_or_else(String::new, |parent| format!("started by thread {}", parent.0));
        let since = self.step;
        self.threads[lane] =
            Thread { next: None, done: false, doing: Doing::Ready, since, label, over: false };
    }

    fn ready(&mut self, thread: ThreadId, event: Event) {
        let lane = self.lane(thread);
        self.threads[lane].over = false;
        use EventKind::{MutexUnlock, RwReadUnlock, RwWriteUnlock};
        if matches!(event.kind, MutexUnlock | RwReadUnlock | RwWriteUnlock) {
            self.gives_back(lane, event.object, self.step);
        }
        (self.threads[lane].next, self.threads[lane].done) = (Some(event), false);
        // A thread that runs says what it does next at every step.
        if self.threads[lane].doing != Doing::Running {
            let label = self.words(&event);
            self.turn(lane, Doing::Ready, label);
        }
    }

    fn blocked(&mut self, thread: ThreadId) {
        let lane = self.lane(thread);
        // What it did not do yet is what it cannot do; what it did last tells only if it is something that waits.
        let label = match (self.threads[lane].next, self.threads[lane].done) {
            (Some(event), false) => format!("waits: {}", self.words(&event)),
            (Some(event), true) if waits(event.kind) => format!("waits: {}", self.words(&event)),
            _ => NO_OBJECT.to_owned(),
        };
        self.turn(lane, Doing::Blocked, label);
    }

    fn finished(&mut self, thread: ThreadId) {
        let lane = self.lane(thread);
        self.turn(lane, Doing::Ready, String::new());
        self.threads[lane].over = true;
        self.holding.iter().filter(|(holder, _, _)| *holder == lane).for_each(|&(lane, lock, from)| {
            self.timeline.held.push(Held { lane, lock, from, to: self.step });
        });
        self.holding.retain(|(holder, _, _)| *holder != lane);
    }

    fn picked(&mut self, thread: ThreadId) {
        let lane = self.lane(thread);
        if let Some(before) = self.ran.filter(|before| *before != lane) {
            let could_go_on = self.threads[before].doing == Doing::Running && !self.threads[before].over;
            if could_go_on {
                self.turn(before, Doing::Ready, String::new());
            }
            self.timeline.switches.push(SwitchPoint {
                at: self.step,
                from: before,
                to: lane,
                forced: could_go_on,
            });
        }
        let event = self.threads[lane].next;
        if self.threads[lane].doing != Doing::Running || self.ran != Some(lane) {
            let label = event.map_or_else(String::new, |event| self.words(&event));
            self.turn(lane, Doing::Running, label);
        }
        if let Some(event) = event {
            self.does(lane, &event);
            let what = self.words(&event);
            match self.loops.step(lane, self.step, &event, &what) {
                waiting::Told::New(last) => {
                    last.into_iter().for_each(|step| self.list(step));
                    self.list(StepWords { at: self.step, lane, what, times: 1 });
                }
                waiting::Told::Again(first, times) => {
                    let mut listed = self.steps.iter_mut().rev();
                    match listed.find(|step| (step.at, step.lane) == (first, lane)) {
                        Some(step) => step.times = times,
                        None => self.list(StepWords { at: first, lane, what, times }),
                    }
                }
            }
        }
        self.threads[lane].done = true;
        self.ran = Some(lane);
        self.step += 1;
    }

    /// Adds a step to those that are listed, in the order in which they were made.
    fn list(&mut self, step: StepWords) {
        let place = self.steps.partition_point(|other| other.at < step.at);
        self.steps.insert(place, step);
        if self.steps.len() > LAST_STEPS {
            self.steps.pop_front();
        }
    }

    /// From now on the thread does something else.
    fn turn(&mut self, lane: usize, doing: Doing, label: String) {
        let step = self.step;
        let thread = &mut self.threads[lane];
        let before = std::mem::replace(thread, Thread { doing, since: step, label, ..thread.clone() });
        if !before.over {
            let Thread { doing, since, label, .. } = before;
            self.timeline.add(Span { lane, from: since, to: step, doing, label });
        }
    }

    /// What the event does to locks.
    fn does(&mut self, lane: usize, event: &Event) {
        use EventKind::*;
        match event.kind {
            MutexLock | RwReadLock | RwWriteLock | MutexTryLock | RwTryReadLock | RwTryWriteLock => {
                let lock = self.lock(event.object);
                // What is held already was tried in vain, or is a lock that one thread may take twice.
                if !self.holding.iter().any(|(holder, held, _)| (*holder, *held) == (lane, lock)) {
                    let trial = matches!(event.kind, MutexTryLock | RwTryReadLock | RwTryWriteLock);
                    let taken = trial && self.holding.iter().any(|(_, held, _)| *held == lock);
                    if !taken {
                        self.holding.push((lane, lock, self.step));
                    }
                }
            }
            CondWait => self.gives_back(lane, event.also, self.step + 1),
            _ => {}
        }
    }

    fn gives_back(&mut self, lane: usize, object: ObjectId, to: u64) {
        if object == ObjectId::NONE {
            return;
        }
        let lock = self.lock(object);
        let place = self.holding.iter().position(|(holder, held, _)| (*holder, *held) == (lane, lock));
        if let Some((_, _, from)) = place.map(|place| self.holding.remove(place)) {
            self.timeline.held.push(Held { lane, lock, from, to });
        }
    }

    fn lock(&mut self, object: ObjectId) -> usize {
        if let Some(lock) = self.locks.get(&object.0) {
            return *lock;
        }
        let lock = self.timeline.locks.len();
        self.timeline.locks.push(format!("lock {}", self.names.lock(object.0, &mut *self.variables)));
        self.locks.insert(object.0, lock);
        lock
    }

    /// An event with its object named.
    fn words(&mut self, event: &Event) -> String {
        use EventKind::*;
        let name = event.kind.name();
        match event.kind {
            MutexLock | MutexTryLock | MutexUnlock | RwReadLock | RwTryReadLock | RwReadUnlock
            | RwWriteLock | RwTryWriteLock | RwWriteUnlock => {
                self.lock(event.object);
                format!("{name} {}", self.names.lock(event.object.0, &mut *self.variables))
            }
            ThreadSpawn | ThreadJoin | Unpark | SignalSend => {
                format!("{name} {}", event.object.0.saturating_sub(1))
            }
            _ if event.object == ObjectId::NONE || event.is_local() => name.to_owned(),
            ThreadStart | ThreadExit | ProcessExit | Park => name.to_owned(),
            _ => format!("{name} {}", self.names.other(event.object.0, &mut *self.variables)),
        }
    }

    fn end(mut self, what: &str) -> Told {
        let step = self.step;
        let ends = (0..self.threads.len()).map(|lane| self.at_end(lane)).collect();
        for lane in 0..self.threads.len() {
            let (doing, label) = (self.threads[lane].doing, self.threads[lane].label.clone());
            self.turn(lane, doing, label);
        }
        for lane in 0..self.threads.len() {
            let last = self.loops.end(lane);
            last.into_iter().for_each(|step| self.list(step));
        }
        self.loops.fold(&mut self.timeline);
        self.timeline.steps = std::mem::take(&mut self.steps).into();
        let all_wait =
            self.threads.iter().filter(|thread| !thread.over).all(|thread| thread.doing == Doing::Blocked);
        self.timeline.failing =
            Some(Failing { at: step, lane: self.ran.filter(|_| !all_wait), what: what.to_owned() });
        // What was given back in the last step is not held any more.
        let given_back = self.timeline.held.len();
        for (lane, lock, from) in std::mem::take(&mut self.holding) {
            self.timeline.held.push(Held { lane, lock, from, to: step });
        }
        self.timeline.end = step;
        if all_wait {
            // For ever, so it is given room for what each waits for.
            let tail = (step / 6).clamp(3, 8);
            self.timeline.end = step + tail;
            let to = self.timeline.end;
            for (lane, thread) in self.threads.iter().enumerate().filter(|(_, thread)| !thread.over) {
                let label = thread.label.clone();
                self.timeline.add(Span { lane, from: step, to, doing: Doing::Blocked, label });
            }
            self.timeline.held[given_back..].iter_mut().for_each(|held| held.to = to);
        }
        Told { timeline: self.timeline, names: self.names, ends }
    }

    /// What a thread does in the end.
    fn at_end(&mut self, lane: usize) -> Option<(Doing, String)> {
        let Thread { next, done, doing, over, .. } = self.threads[lane];
        let event = next.filter(|event| !done || (doing == Doing::Blocked && waits(event.kind)));
        (!over).then(|| (doing, event.map_or_else(String::new, |event| self.words(&event))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: EventKind, object: u64) -> Event {
        Event::new(kind, ObjectId(object))
    }

    /// Two threads that take two locks in opposite order.
    pub(crate) fn deadlock() -> Vec<Said> {
        use EventKind::*;
        let (one, two) = (ThreadId(0), ThreadId(1));
        vec![
            Said::Spawned(one, None),
            Said::Ready(one, event(MutexLock, 100)),
            Said::Spawned(two, Some(one)),
            Said::Ready(two, event(MutexLock, 200)),
            Said::Picked(Some(one)),
            Said::Ready(one, event(MutexLock, 200)),
            Said::Picked(Some(two)),
            Said::Blocked(one),
            Said::Ready(two, event(MutexLock, 100)),
            Said::Blocked(two),
            Said::Picked(None),
        ]
    }

    #[test]
    fn a_deadlock_shows_who_holds_what_and_waits_for_what() {
        let Told { timeline, names, .. } = timeline("x", &deadlock(), "deadlock", &mut |_| None).unwrap();
        assert_eq!(names.clone().lock(0xc8, &mut |_| None), "B");
        assert_eq!((timeline.end, timeline.lanes.len()), (5, 2), "and some more, for what lasts for ever");
        assert_eq!(timeline.locks, ["lock A", "lock B"]);
        let mut held = timeline.held.clone();
        held.sort_by_key(|held| held.lane);
        assert_eq!(
            held,
            [Held { lane: 0, lock: 0, from: 0, to: 5 }, Held { lane: 1, lock: 1, from: 1, to: 5 }]
        );
        let waits = timeline.spans.iter().filter(|span| span.doing == Doing::Blocked);
        let mut waits: Vec<(usize, &str)> = waits.map(|span| (span.lane, span.label.as_str())).collect();
        waits.sort_unstable();
        waits.dedup();
        assert_eq!(waits, [(0, "waits: mutex-lock B"), (1, "waits: mutex-lock A")]);
        let steps: Vec<&str> = timeline.steps.iter().map(|step| step.what.as_str()).collect();
        assert_eq!(steps, ["mutex-lock A", "mutex-lock B"]);
        assert_eq!(timeline.switches, [SwitchPoint { at: 1, from: 0, to: 1, forced: true }]);
        let failing = timeline.failing.unwrap();
        assert_eq!((failing.at, failing.lane), (2, None), "nobody alone is to blame");
    }

    #[test]
    fn what_a_thread_waits_for_is_filled_in_where_nothing_was_said() {
        let (one, two) = (ThreadId(0), ThreadId(1));
        let said = [
            Said::Spawned(one, None),
            Said::Spawned(two, Some(one)),
            Said::Ready(two, event(EventKind::MutexLock, 8)),
            Said::Picked(Some(two)),
            Said::Blocked(one),
            Said::Blocked(two),
            Said::Picked(None),
        ];
        let mut timeline = timeline("x", &said, "deadlock", &mut |_| None).unwrap().timeline;
        timeline.waits_at_end(0, "thread-join of thread 1");
        timeline.waits_at_end(7, "nobody");
        let of = |lane| timeline.spans.iter().rfind(|span| span.lane == lane).map(|span| span.label.as_str());
        assert_eq!((of(0), of(1)), (Some("waits: thread-join of thread 1"), Some("waits")));
    }

    #[test]
    fn what_each_thread_does_in_the_end_is_told() {
        use EventKind::*;
        let ends = timeline("x", &deadlock(), "deadlock", &mut |_| None).unwrap().ends;
        let waits = |lock: &str| Some((Doing::Blocked, format!("mutex-lock {lock}")));
        assert_eq!(ends, [waits("B"), waits("A")]);
        // One that waited until the very last step, which gave it what it waited for.
        let mut said = deadlock()[..9].to_vec();
        said.extend([Said::Picked(Some(ThreadId(1))), Said::Ready(ThreadId(0), event(MutexLock, 200))]);
        let ends = timeline("x", &said, "assert", &mut |_| None).unwrap().ends;
        assert_eq!(
            ends,
            [Some((Doing::Ready, "mutex-lock B".into())), Some((Doing::Running, String::new()))]
        );
    }

    /// The one that unlocks has done so before its step, at which the other one goes on.
    #[test]
    fn a_mutex_has_one_holder_at_a_time() {
        use EventKind::*;
        let (one, two) = (ThreadId(0), ThreadId(1));
        let said = [
            Said::Spawned(one, None),
            Said::Spawned(two, Some(one)),
            Said::Ready(one, event(MutexLock, 8)),
            Said::Ready(two, event(MutexLock, 8)),
            Said::Picked(Some(one)),
            Said::Blocked(two),
            Said::Ready(two, event(MutexLock, 8)),
            Said::Ready(one, event(MutexUnlock, 8)),
            Said::Picked(Some(two)),
            Said::Ready(two, event(MutexUnlock, 8)),
            Said::Picked(Some(one)),
        ];
        let held = timeline("x", &said, "assert", &mut |_| None).unwrap().timeline.held;
        assert_eq!(
            held,
            [Held { lane: 0, lock: 0, from: 0, to: 1 }, Held { lane: 1, lock: 0, from: 1, to: 2 }]
        );
    }

    #[test]
    fn a_mutex_is_not_held_by_the_one_that_waits_on_its_condition_for_ever() {
        use EventKind::*;
        let one = ThreadId(0);
        let said = [
            Said::Spawned(one, None),
            Said::Ready(one, event(MutexLock, 8)),
            Said::Picked(Some(one)),
            Said::Ready(one, Event::cond_wait(ObjectId(16), ObjectId(8))),
            Said::Picked(Some(one)),
            Said::Blocked(one),
            Said::Picked(None),
        ];
        let timeline = timeline("x", &said, "deadlock", &mut |_| None).unwrap().timeline;
        assert_eq!(timeline.held, [Held { lane: 0, lock: 0, from: 0, to: 2 }]);
        assert!(timeline.end > 2, "what lasts for ever is given room");
    }

    #[test]
    fn a_lock_that_is_given_back_is_held_until_then() {
        use EventKind::*;
        let one = ThreadId(0);
        let mut said = vec![Said::Spawned(one, None)];
        for next in [event(MutexLock, 8), event(AtomicStore, 16), event(MutexUnlock, 8), event(ThreadExit, 1)]
        {
            said.extend([Said::Ready(one, next), Said::Picked(Some(one))]);
        }
        said.push(Said::Finished(one));
        let Told { timeline, ends, .. } = timeline("x", &said, "assert", &mut |_| None).unwrap();
        assert_eq!(ends, [None]);
        assert_eq!(timeline.held, [Held { lane: 0, lock: 0, from: 0, to: 2 }]);
        assert_eq!(timeline.spans.len(), 1, "{:?}", timeline.spans);
        assert_eq!(timeline.spans[0].label, "mutex-lock A");
        assert!(super::timeline("x", &[], "y", &mut |_| None).is_none());
    }
}
