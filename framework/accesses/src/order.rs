//! What comes before what in a run, whatever the schedule: vector clocks, and the locks that threads hold. Pure.
//!
//! A clock counts what a thread has handed on to others. Creating and joining threads, condition variables, semaphores,
//! barriers, futexes and atomics order what two threads do. Locks can be taken in any order, so what one schedule shows
//! about them says nothing about the next; that two accesses are made under one lock says that they never meet.
//! [`Locks`] chooses whether locks count as order (a race detector) or as protection (a look ahead to other schedules).

use waylay_schedule::ThreadId;

use waylay_scheduler::ByAddress;

mod published;

pub use published::Promise;
use published::Published;

/// What a lock means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Locks {
    /// Who unlocks comes before who locks next: in this schedule.
    Order,
    /// What is done with a common lock held never meets: in any schedule.
    #[default]
    Protect,
}

/// How a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// Together with other readers.
    Shared,
    /// Alone.
    Exclusive,
}

/// A moment of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Epoch {
    pub(crate) thread: u32,
    pub(crate) clock: u32,
}

/// The number of a set of locks; 0 is the empty one.
pub(crate) type SetId = u32;

#[derive(Clone, Debug, Default)]
struct Clock(Vec<u32>);

impl Clock {
    fn get(&self, thread: u32) -> u32 {
        self.0.get(thread as usize).copied().unwrap_or(0)
    }

    fn join(&mut self, other: &Clock) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine = (*mine).max(*theirs);
        }
    }
}

#[derive(Debug, Default)]
struct Thread {
    clock: Clock,
    /// Locks that are held, how, and how often.
    held: Vec<(usize, Way, u32)>,
    set: SetId,
    /// What it read without taking it over, until a fence does that.
    glimpsed: Clock,
    /// What its last fence lets its later stores hand over, whatever they promise themselves.
    fenced: Clock,
}

/// The order of a run so far.
#[derive(Debug, Default)]
pub struct Order {
    locks: Locks,
    threads: Vec<Thread>,
    /// What was handed over through an object, by its address.
    objects: ByAddress<usize, Clock>,
    /// What was handed over through an atomic variable whose memory orders are known, by its address.
    published: ByAddress<usize, Published>,
    /// Every set of locks that was held, each sorted by address.
    sets: Vec<Vec<(usize, Way)>>,
    /// Threads that were created, less those that were joined.
    unjoined: u32,
    /// What threads did whose stacks others may have got since.
    gone: Clock,
}

/// Where the readers of a lock hand over; no lock is at an odd address.
fn readers_of(lock: usize) -> usize {
    lock | 1
}

impl Order {
    pub(crate) fn new(locks: Locks) -> Order {
        Order { locks, sets: vec![Vec::new()], ..Order::default() }
    }

    fn thread(&mut self, thread: ThreadId) -> &mut Thread {
        let index = thread.index();
        while self.threads.len() <= index {
            let own = self.threads.len();
            let mut clock = Clock(vec![0; own + 1]);
            clock.0[own] = 1;
            self.threads.push(Thread { clock, ..Thread::default() });
        }
        &mut self.threads[index]
    }

    /// The present moment of a thread.
    pub(crate) fn now(&mut self, thread: ThreadId) -> Epoch {
        Epoch { thread: thread.0, clock: self.thread(thread).clock.get(thread.0) }
    }

    /// Whether a moment comes before whatever `thread` does now.
    pub(crate) fn is_before(&self, moment: Epoch, thread: ThreadId) -> bool {
        self.threads.get(thread.index()).is_some_and(|thread| thread.clock.get(moment.thread) >= moment.clock)
    }

    /// The set of locks that a thread holds.
    pub(crate) fn held(&self, thread: ThreadId) -> SetId {
        self.threads.get(thread.index()).map_or(0, |thread| thread.set)
    }

    /// The locks of a set, by address.
    pub(crate) fn locks_of(&self, set: SetId) -> &[(usize, Way)] {
        self.sets.get(set as usize).map_or(&[], Vec::as_slice)
    }

    /// Whether two sets have a lock in common that both cannot hold at once.
    pub(crate) fn protect(&self, one: SetId, other: SetId) -> bool {
        if one == 0 || other == 0 {
            return false;
        }
        let (one, other) = (&self.sets[one as usize], &self.sets[other as usize]);
        one.iter().any(|&(lock, way)| {
            other.iter().any(|&(same, their_way)| {
                same == lock && (way == Way::Exclusive || their_way == Way::Exclusive)
            })
        })
    }

    fn tick(&mut self, thread: ThreadId) {
        self.thread(thread).clock.0[thread.index()] += 1;
    }

    /// What the parent did so far comes before all that the child does.
    pub(crate) fn spawned(&mut self, parent: ThreadId, child: ThreadId) {
        let clock = self.thread(parent).clock.clone();
        let gone = core::mem::take(&mut self.gone);
        self.thread(child).clock.join(&clock);
        self.thread(child).clock.join(&gone);
        self.gone = gone;
        self.tick(parent);
        self.unjoined += 1;
    }

    /// All that the ended thread did comes before what the joining thread does from now on.
    pub(crate) fn joined(&mut self, thread: ThreadId, ended: ThreadId) {
        self.unjoined = self.unjoined.saturating_sub(1);
        let clock = self.thread(ended).clock.clone();
        self.thread(thread).clock.join(&clock);
        self.ended(ended);
    }

    /// All that another did comes before what the thread does from now on.
    pub(crate) fn include(&mut self, thread: ThreadId, other: ThreadId) {
        let clock = self.thread(other).clock.clone();
        self.thread(thread).clock.join(&clock);
    }

    /// The stack of a thread that nobody will join, or that was joined, may become that of another: to that one, and to
    /// nobody else, it comes before. In other schedules the two may live at once, so that does not protect.
    pub(crate) fn ended(&mut self, thread: ThreadId) {
        if self.locks == Locks::Order {
            let clock = self.thread(thread).clock.clone();
            self.gone.join(&clock);
        }
    }

    /// What the thread did so far comes before what those do who take over from the object.
    pub fn hand_over(&mut self, thread: ThreadId, object: usize) {
        self.thread(thread);
        let clock = &self.threads[thread.index()].clock;
        self.objects.entry(object).or_default().join(clock);
        self.tick(thread);
    }

    /// Whether a thread was created that nobody has joined.
    pub(crate) fn has_unjoined(&self) -> bool {
        self.unjoined > 0
    }

    /// What was handed over through the object comes before what the thread does from now on.
    pub fn take_over(&mut self, thread: ThreadId, object: usize) {
        self.thread(thread);
        if let Some(clock) = self.objects.get(&object) {
            self.threads[thread.index()].clock.join(clock);
        }
    }

    /// There are new objects in this memory: nothing was handed over through them.
    pub(crate) fn forget(&mut self, start: usize, bytes: usize) {
        let range = start..start.saturating_add(bytes);
        if bytes > self.published.len() {
            self.published.retain(|object, _| !range.contains(object));
        } else {
            for object in range.clone() {
                self.published.remove(&object);
            }
        }
        if bytes / 2 > self.objects.len() {
            self.objects.retain(|object, _| !range.contains(object));
            return;
        }
        // Objects have the alignment of a futex at least; beside each may be the place of its readers.
        for object in range.step_by(4) {
            self.objects.remove(&object);
            self.objects.remove(&readers_of(object));
        }
    }

    /// A moment of another thread comes before what the thread does from now on, and so does what came before that one. What
    /// that was is not remembered: all that comes before the other thread now stands for it.
    pub(crate) fn catch_up(&mut self, thread: ThreadId, moment: Epoch) {
        let mut clock = self.thread(ThreadId(moment.thread)).clock.clone();
        clock.0[moment.thread as usize] = moment.clock;
        self.thread(thread).clock.join(&clock);
    }

    /// What the thread does from now on is another moment.
    pub(crate) fn pass(&mut self, thread: ThreadId) {
        self.thread(thread);
        self.tick(thread);
    }

    /// The thread holds a lock, or once more.
    pub fn locked(&mut self, thread: ThreadId, lock: usize, way: Way) {
        if self.locks == Locks::Order {
            self.take_over(thread, lock);
            if way == Way::Exclusive {
                self.take_over(thread, readers_of(lock));
            }
        }
        let held = &mut self.thread(thread).held;
        match held.iter_mut().find(|(address, _, _)| *address == lock) {
            Some((_, _, count)) => *count += 1,
            None => {
                held.push((lock, way, 1));
                self.note_set(thread);
            }
        }
    }

    /// The thread gives a lock back, or one time of several.
    pub fn unlocked(&mut self, thread: ThreadId, lock: usize) {
        if self.locks == Locks::Order {
            let held = &self.thread(thread).held;
            let shared = held.iter().any(|(address, way, _)| *address == lock && *way == Way::Shared);
            self.hand_over(thread, if shared { readers_of(lock) } else { lock });
        }
        let held = &mut self.thread(thread).held;
        if let Some(place) = held.iter().position(|(address, _, _)| *address == lock) {
            held[place].2 -= 1;
            if held[place].2 == 0 {
                held.swap_remove(place);
                self.note_set(thread);
            }
        }
    }

    fn note_set(&mut self, thread: ThreadId) {
        let entry = &self.threads[thread.index()];
        let mut set: Vec<(usize, Way)> = entry.held.iter().map(|&(lock, way, _)| (lock, way)).collect();
        set.sort_unstable();
        let number = self.sets.iter().position(|known| *known == set).unwrap_or_else(|| {
            self.sets.push(set);
            self.sets.len() - 1
        });
        self.threads[thread.index()].set = number as SetId;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAIN: ThreadId = ThreadId(0);
    const ONE: ThreadId = ThreadId(1);
    const TWO: ThreadId = ThreadId(2);

    #[test]
    fn creating_and_joining_order() {
        let mut order = Order::new(Locks::Protect);
        let before = order.now(MAIN);
        order.spawned(MAIN, ONE);
        let after = order.now(MAIN);
        assert!(order.is_before(before, ONE) && !order.is_before(after, ONE));
        let inside = order.now(ONE);
        assert!(!order.is_before(inside, MAIN) && order.has_unjoined());
        order.joined(MAIN, ONE);
        assert!(order.is_before(inside, MAIN) && !order.has_unjoined());
    }

    #[test]
    fn what_is_handed_over_is_ordered_and_what_follows_is_not() {
        let mut order = Order::new(Locks::Protect);
        order.spawned(MAIN, ONE);
        order.spawned(MAIN, TWO);
        let before = order.now(ONE);
        order.hand_over(ONE, 64);
        let after = order.now(ONE);
        order.take_over(TWO, 64);
        assert!(order.is_before(before, TWO) && !order.is_before(after, TWO));
    }

    #[test]
    fn locks_protect_and_do_not_order() {
        let mut order = Order::new(Locks::Protect);
        order.spawned(MAIN, ONE);
        order.spawned(MAIN, TWO);
        order.locked(ONE, 8, Way::Exclusive);
        order.locked(ONE, 8, Way::Exclusive);
        order.locked(ONE, 16, Way::Shared);
        let (moment, set) = (order.now(ONE), order.held(ONE));
        order.unlocked(ONE, 8);
        assert_eq!(order.held(ONE), set, "held twice");
        order.unlocked(ONE, 8);
        order.unlocked(ONE, 16);
        assert_eq!(order.held(ONE), 0);
        order.locked(TWO, 16, Way::Shared);
        assert!(!order.protect(set, order.held(TWO)), "two readers meet");
        order.locked(TWO, 8, Way::Exclusive);
        assert!(order.protect(set, order.held(TWO)) && !order.is_before(moment, TWO));
    }

    #[test]
    fn for_a_race_detector_locks_order() {
        let mut order = Order::new(Locks::Order);
        order.spawned(MAIN, ONE);
        order.spawned(MAIN, TWO);
        let moment = order.now(ONE);
        order.unlocked(ONE, 8);
        order.locked(TWO, 8, Way::Exclusive);
        assert!(order.is_before(moment, TWO));
    }
}
