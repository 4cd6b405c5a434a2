//! Ordered: a run in which some events come in a given order, and everything else is left to something simple.
//!
//! What the search for a cause works with: an order of two events of two threads is kept, or turned round, and it is seen
//! whether the failure is still there. An event is named by its thread, what it does to what, and how often that thread did
//! the same before, so it keeps its meaning when other steps come or go. A thread that is about to do the second event of
//! an order is held back until the first has happened. Orders that come first in the list count more: when nobody else
//! can run, or for too long only others do, the last order that holds somebody is given up. Whether an order was kept is
//! for those to say who see what happened.

use crate::event::{Event, EventKind, ObjectId, ThreadId};
pub use crate::named::{EventName, LastLook, Order};
use crate::rotation::Rotation;
use crate::run::{Run, RunParameters, RunReport, Seed};
use crate::schedule::Turn;
use crate::source::{ChaCha, Source};
use crate::strategy::Strategy;

/// Steps of others for which a thread is held back: many times what programs take that can be explained, and few compared
/// with a run that waits in a loop for ever.
const PATIENCE: u64 = 3_000;
/// Steps without a break after which a thread that has the highest priority loses it: it may be waiting in a loop.
const STRETCH: u64 = 1_000;

/// Who runs where no order has a say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Base {
    /// Each thread runs until it waits, but for these switches.
    Turns(Vec<Turn>),
    /// Each thread runs until it waits; who comes before whom is drawn from this seed, those that no order speaks of last.
    Priorities(u64),
    /// At every step one of all, drawn from this seed.
    Walk(u64),
}

/// How an order stands in a run.
#[derive(Clone, Copy, Debug)]
struct State {
    order: Order,
    /// How often each of the two was seen.
    seen: [u32; 2],
    /// Whether the first was seen last, and its thread may go on to look.
    looks: bool,
    /// Steps of others while somebody was held back for it.
    waited: u64,
    given_up: bool,
}

impl State {
    fn of(order: Order) -> State {
        State { order, seen: [0, 0], looks: false, waited: 0, given_up: false }
    }

    /// Whether a thread that is about to do this has to wait.
    fn holds(&self, thread: ThreadId, next: &Event, last: LastLook) -> bool {
        let Order { first, then } = self.order;
        let done = self.seen[0] > first.occurrence || self.seen[0] == first.occurrence && !self.looks;
        !self.given_up
            && !done
            && then.counts(thread, next)
            && self.seen[1] + 1 == then.occurrence
            && !(then.is_folded() && last.is_repeated(next))
    }

    /// A thread does this.
    fn sees(&mut self, thread: ThreadId, event: &Event, last: LastLook) {
        let Order { first, then } = self.order;
        for (place, name) in [first, then].iter().enumerate() {
            let again = name.is_folded() && last.is_repeated(event);
            if name.counts(thread, event) && !again {
                self.seen[place] += 1;
                self.looks |= place == 0 && name.is_folded();
            }
        }
    }
}

/// Keeps orders.
#[derive(Clone, Debug)]
pub struct Ordered {
    states: Vec<State>,
    base: Base,
    source: ChaCha,
    rotation: Rotation,
    /// By thread: what it is about to do, its steps, its priority.
    next: Vec<Option<Event>>,
    looked: Vec<LastLook>,
    steps: Vec<u64>,
    priorities: Vec<u64>,
    last: Option<ThreadId>,
    stretch: u64,
    lowest: u64,
    /// Who may run, in the order of the base; room for all, because nothing is allocated during a run.
    all: Vec<ThreadId>,
}

impl Ordered {
    /// A run with these orders, the most important first.
    pub fn new(orders: &[Order], base: Base) -> Ordered {
        let states = orders.iter().map(|&order| State::of(order)).collect();
        let mut base = base;
        if let Base::Turns(turns) = &mut base {
            turns.sort_by_key(|turn| (turn.of, turn.after));
            turns.dedup_by_key(|turn| (turn.of, turn.after));
        }
        Ordered {
            states,
            base,
            source: ChaCha::new(),
            rotation: Rotation::fair(),
            next: Vec::new(),
            looked: Vec::new(),
            steps: Vec::new(),
            priorities: Vec::new(),
            last: None,
            stretch: 0,
            lowest: u64::MAX / 2,
            all: Vec::new(),
        }
    }

    fn reserve(&mut self, thread: ThreadId) {
        self.rotation.reserve(thread);
        while self.next.len() <= thread.index() {
            self.next.push(None);
            self.looked.push(LastLook::default());
            self.steps.push(0);
            let number = ThreadId(self.priorities.len() as u32);
            let involved =
                |state: &State| [state.order.first.thread, state.order.then.thread].contains(&number);
            // Threads that no order speaks of come behind the others: they only disturb what is looked at. In every second run they
            // come first: a thread that starts all others would otherwise let each go on before the next is there.
            let rank = match (self.states.iter().any(involved), &self.base) {
                (false, Base::Priorities(seed)) if seed / 2 % 2 == 1 => 7 << 61,
                (true, _) => 3 << 62,
                (false, _) => 1 << 63,
            };
            let key = self.source.key() >> 3 | rank;
            self.priorities.push(key);
        }
        self.all.clear();
        self.all.reserve(self.next.len());
    }

    /// A thread has looked for the last time.
    fn leaves(&mut self, thread: ThreadId) {
        self.states
            .iter_mut()
            .filter(|state| state.order.first.thread == thread)
            .for_each(|state| state.looks = false);
    }

    /// The order that holds a thread back, by its place.
    fn holder(&self, thread: ThreadId) -> Option<usize> {
        let (next, last) = (self.next[thread.index()]?, self.looked[thread.index()]);
        self.states.iter().rposition(|state| state.holds(thread, &next, last))
    }

    /// Finds out whom the base would let run, the first of them first.
    fn line_up(&mut self) {
        let Ordered { all, rotation, source, .. } = self;
        all.clear();
        all.extend((0..rotation.len()).filter_map(|place| rotation.at(place)));
        match &self.base {
            Base::Turns(turns) => {
                if let Some(of) = self.last
                    && let after = self.steps[of.index()]
                    && let Ok(place) = turns.binary_search_by_key(&(of, after), |turn| (turn.of, turn.after))
                {
                    let to = turns[place].to;
                    match all.iter().position(|&thread| thread == to) {
                        Some(place) => all[..=place].rotate_right(1),
                        None if all.len() > 1 && all[0] == of => all.rotate_left(1),
                        None => {}
                    }
                }
            }
            Base::Priorities(_) => {
                // Who yields comes behind all who do not.
                let yields = |thread: ThreadId| Some(thread) == self.last && !rotation.would_preempt();
                all.sort_unstable_by_key(|&thread| {
                    (yields(thread), std::cmp::Reverse(self.priorities[thread.index()]))
                });
            }
            Base::Walk(_) => {
                for place in 1..all.len() {
                    let other = source.below(place as u64 + 1) as usize;
                    all.swap(place, other);
                }
            }
        }
    }

    fn choose(&mut self) -> Option<ThreadId> {
        self.line_up();
        loop {
            let mut free = None;
            let mut least = None;
            for place in 0..self.all.len() {
                let thread = self.all[place];
                match self.holder(thread) {
                    None => free = free.or(Some(thread)),
                    Some(holder) => least = least.max(Some(holder)),
                }
            }
            let Some(holder) = least else { return free };
            // When everybody is held back, or somebody for too long, the order that counts least is given up.
            let state = &mut self.states[holder];
            state.waited += 1;
            if free.is_some() && state.waited <= PATIENCE {
                return free;
            }
            state.given_up = true;
        }
    }
}

impl Strategy for Ordered {
    fn plan(&mut self, _run: Run) -> Option<RunParameters> {
        Some(RunParameters::of("ordered"))
    }

    fn begin(&mut self, _run: Run, _parameters: &RunParameters) {
        let seed = match self.base {
            Base::Turns(_) => 0,
            Base::Priorities(seed) | Base::Walk(seed) => seed,
        };
        self.source.begin(Run { seed: Seed(seed), index: 0 });
        self.states.iter_mut().for_each(|state| {
            *state = State::of(state.order);
        });
        self.rotation.clear();
        self.next.clear();
        self.looked.clear();
        self.steps.clear();
        self.priorities.clear();
        (self.last, self.stretch, self.lowest) = (None, 0, u64::MAX / 2);
    }

    fn spawned(&mut self, thread: ThreadId, _parent: Option<ThreadId>) {
        self.reserve(thread);
    }

    fn ready(&mut self, thread: ThreadId, next: Event) {
        self.reserve(thread);
        if self.looked[thread.index()].is_over(&next) {
            self.leaves(thread);
        }
        self.next[thread.index()] = Some(next);
        self.rotation.ready(thread, next);
    }

    fn blocked(&mut self, thread: ThreadId) {
        self.rotation.remove(thread);
    }

    fn finished(&mut self, thread: ThreadId) {
        self.leaves(thread);
        self.rotation.remove(thread);
    }

    fn pick(&mut self) -> Option<ThreadId> {
        let chosen = self.choose()?;
        if let Some(event) = self.next[chosen.index()].take() {
            let last = &mut self.looked[chosen.index()];
            self.states.iter_mut().for_each(|state| state.sees(chosen, &event, *last));
            last.does(&event);
        }
        self.stretch = if self.last == Some(chosen) { self.stretch + 1 } else { 0 };
        if self.stretch > STRETCH {
            self.stretch = 0;
            self.lowest -= 1;
            self.priorities[chosen.index()] = self.lowest;
        }
        self.steps[chosen.index()] += 1;
        self.last = Some(chosen);
        self.rotation.turn(chosen);
        Some(chosen)
    }

    fn end(&mut self, _report: &RunReport<'_>) {}
}

/// A run's orders and base in pairs of words, for memory that two processes share.
pub fn to_words(orders: &[Order], base: &Base) -> Vec<[u64; 2]> {
    let (code, seed, turns) = match base {
        Base::Turns(turns) => (0, 0, turns.as_slice()),
        Base::Priorities(seed) => (1, *seed, &[][..]),
        Base::Walk(seed) => (2, *seed, &[][..]),
    };
    let name = |name: &EventName| {
        let occurrence = u64::from(name.occurrence.min(MOST_OCCURRENCES));
        let thread = u64::from(name.thread.0).min(MOST_THREADS) | u64::from(name.place) << 16;
        [thread | u64::from(name.kind.code()) << 32 | occurrence << 40, name.object.0]
    };
    let mut words = vec![[code | (orders.len() as u64) << 32, seed]];
    words.extend(orders.iter().flat_map(|order| [name(&order.first), name(&order.then)]));
    words.extend(turns.iter().map(|turn| [u64::from(turn.of.0) | u64::from(turn.to.0) << 32, turn.after]));
    words
}

/// The greatest number of a thread that has room in the words.
const MOST_THREADS: u64 = u16::MAX as u64;
/// The greatest occurrence that has room in the words.
const MOST_OCCURRENCES: u32 = (1 << 24) - 1;

/// What the words say; none when they say nothing.
pub fn from_words(words: &[[u64; 2]]) -> Option<(Vec<Order>, Base)> {
    let ([head, seed], rest) = (*words.first()?, &words[1..]);
    let count = (head >> 32) as usize;
    let (names, turns) = rest.split_at_checked(count.checked_mul(2)?)?;
    let name = |[first, object]: [u64; 2]| {
        Some(EventName {
            thread: ThreadId(u32::from(first as u16)),
            place: (first >> 16) as u16,
            kind: EventKind::from_code((first >> 32) as u8)?,
            object: ObjectId(object),
            occurrence: (first >> 40) as u32,
        })
    };
    let orders =
        names.chunks_exact(2).map(|pair| Some(Order { first: name(pair[0])?, then: name(pair[1])? }));
    let turn = |&[threads, after]: &[u64; 2]| Turn {
        of: ThreadId(threads as u32),
        after,
        to: ThreadId((threads >> 32) as u32),
    };
    let base = match head as u32 {
        0 => Base::Turns(turns.iter().map(turn).collect()),
        1 => Base::Priorities(seed),
        2 => Base::Walk(seed),
        _ => return None,
    };
    Some((orders.collect::<Option<Vec<_>>>()?, base))
}

#[cfg(test)]
mod tests {
    use super::*;

    const X: ObjectId = ObjectId(0x1000);

    /// Two threads that each read and then write the same word: who did what, in order.
    fn run(strategy: &mut Ordered) -> Vec<(u32, EventKind)> {
        let program = [EventKind::PlainRead, EventKind::PlainWrite];
        strategy.begin(Run::default(), &RunParameters::default());
        let mut at = [0, 0];
        for thread in [ThreadId(0), ThreadId(1)] {
            strategy.spawned(thread, None);
            strategy.ready(thread, Event::new(program[0], X));
        }
        let mut done = Vec::new();
        while let Some(thread) = strategy.pick() {
            let place = &mut at[thread.index()];
            done.push((thread.0, program[*place]));
            *place += 1;
            match program.get(*place) {
                Some(&kind) => strategy.ready(thread, Event::new(kind, X)),
                None => strategy.finished(thread),
            }
        }
        done
    }

    fn name(thread: u32, kind: EventKind) -> EventName {
        EventName { thread: ThreadId(thread), kind, object: X, occurrence: 1, place: 0 }
    }

    #[test]
    fn orders_are_kept_whatever_the_base() {
        use EventKind::{PlainRead as R, PlainWrite as W};
        let lost =
            [Order { first: name(0, R), then: name(1, W) }, Order { first: name(1, R), then: name(0, W) }];
        let bases = (0..50).flat_map(|seed| [Base::Priorities(seed), Base::Walk(seed)]);
        for base in bases.chain([Base::Turns(Vec::new())]) {
            let done = run(&mut Ordered::new(&lost, base.clone()));
            let place = |event| done.iter().position(|&other| other == event).unwrap();
            assert!(place((0, R)) < place((1, W)) && place((1, R)) < place((0, W)), "{base:?}: {done:?}");
            // With one of them reversed the other is kept.
            let flipped = [lost[0].reversed(), lost[1]];
            let done = run(&mut Ordered::new(&flipped, base.clone()));
            assert_eq!(done, [(1, R), (1, W), (0, R), (0, W)], "{base:?}");
        }
    }

    #[test]
    fn what_cannot_be_is_given_up_the_last_order_first() {
        use EventKind::{PlainRead as R, PlainWrite as W};
        let (one, other) =
            (Order { first: name(1, W), then: name(0, R) }, Order { first: name(0, W), then: name(1, R) });
        let done = run(&mut Ordered::new(&[one, other], Base::Turns(Vec::new())));
        assert_eq!(done, [(1, R), (1, W), (0, R), (0, W)], "the first order holds, the second is given up");
    }

    #[test]
    fn forced_switches_are_made() {
        let turn = Turn { of: ThreadId(0), after: 1, to: ThreadId(1) };
        let done = run(&mut Ordered::new(&[], Base::Turns(vec![turn])));
        assert_eq!(done.iter().map(|(thread, _)| *thread).collect::<Vec<_>>(), [0, 1, 1, 0]);
    }

    /// One thread looks until another has written: who did what, in order.
    fn waits(strategy: &mut Ordered) -> Vec<(u32, EventKind)> {
        let (one, two) = (ThreadId(0), ThreadId(1));
        let look = Event::access(EventKind::AtomicLoad, X.0, 4).at(0x11);
        strategy.begin(Run::default(), &RunParameters::default());
        for (thread, next) in [(one, look), (two, Event::new(EventKind::PlainWrite, X))] {
            strategy.spawned(thread, None);
            strategy.ready(thread, next);
        }
        let (mut done, mut written) = (Vec::new(), false);
        while let Some(thread) = strategy.pick() {
            let kind = if thread == one { look.kind } else { EventKind::PlainWrite };
            done.push((thread.0, kind));
            written |= thread == two;
            match thread == one && !written {
                true => strategy.ready(one, look),
                false => strategy.finished(thread),
            }
        }
        done
    }

    #[test]
    fn a_loop_of_looks_is_one_event_that_is_over_with_its_last() {
        let look = EventName {
            thread: ThreadId(0),
            kind: EventKind::AtomicLoad,
            object: X,
            occurrence: 1,
            place: 0x11,
        };
        let write = name(1, EventKind::PlainWrite);
        // The write ends the loop, so it cannot come behind it: that is given up after a while.
        let never = waits(&mut Ordered::new(&[Order { first: look, then: write }], Base::Turns(Vec::new())));
        assert!(never.len() as u64 > PATIENCE, "{}", never.len());
        let after = waits(&mut Ordered::new(&[Order { first: write, then: look }], Base::Turns(Vec::new())));
        assert_eq!(after, [(1, EventKind::PlainWrite), (0, EventKind::AtomicLoad)]);
    }

    #[test]
    fn words_say_the_same() {
        use EventKind::{PlainRead as R, PlainWrite as W};
        let order = Order {
            first: EventName { place: 0xfedc, ..name(7, R) },
            then: EventName { occurrence: 70_000, ..name(3, W) },
        };
        let turn = Turn { of: ThreadId(4), after: 1 << 40, to: ThreadId(5) };
        for base in [Base::Turns(vec![turn, turn]), Base::Priorities(9), Base::Walk(u64::MAX)] {
            let words = to_words(&[order, order.reversed()], &base);
            assert_eq!(from_words(&words), Some((vec![order, order.reversed()], base)));
        }
        assert_eq!(from_words(&[]), None);
        assert_eq!(from_words(&[[5 << 32, 0]]), None, "cut off");
    }
}
