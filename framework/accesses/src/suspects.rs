//! Which accesses are worth a step: those that can meet another of the same memory, one of them writing, in an order that
//! nothing settles.
//!
//! Most memory of a program is of one thread, or always under one lock, or handed over when threads begin and end. A step
//! at such an access shows nothing that steps at the locks and hand-overs do not, and k, the number of steps, is what
//! every guarantee divides by. So it is noted who touched a word, when, and under which locks; two that meet without
//! order and without a common lock are worth a step from the next runs on, in whatever order this run had them.
//!
//! Atomic operations order what is around them, and are steps by themselves. A word that is accessed with them is shared
//! on purpose, so a plain access of it hands over too: that is how compilers write loads and stores that are atomic. A
//! plain store may come before the first atomic operation that shows what the word is; who then reads the word takes over
//! from that store all the same, so that a flag settles the order of what it publishes, however much that is.
//!
//! A hand-over settles the order of what this run did. Whether the next run hands over in the same way is another matter: a
//! structure without locks that has a bug gives one object to two threads at once. So a second order is followed, that of what
//! the program forces in every run: creating and joining threads, barriers, conditions. Accesses that meet in an order which
//! only a hand-over by an atomic, a semaphore or a futex gave are told of as handed over ([`Settled::ByHandOver`]): steps in a
//! share of the runs (`waylay_control_protocol::Turns`).
//!
//! A free is a write to all of a block. Whether it is a step is not decided here.

use waylay_schedule::ThreadId;

use crate::freed::{Freed, words_of};
use crate::order::{Epoch, Order, SetId};
use waylay_scheduler::ByAddress;

/// log2 of the bytes that are remembered together, each with a bit of its own.
const GRAIN: u32 = 3;
/// Words of one access that are looked at: of a longer copy, the beginning.
const MOST_WORDS: usize = 1 << 13;
/// What is remembered of a word: more than the places in code, times threads, that concern one variable.
const MOST_VISITS: u32 = 48;
/// Words that are remembered; after that, what is new is not looked at.
const MOST_MEMORY: usize = 1 << 18;
const NONE: u32 = u32::MAX;

/// An access.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touch {
    pub(crate) thread: ThreadId,
    pub(crate) code: usize,
    pub(crate) address: usize,
    pub(crate) bytes: usize,
    pub(crate) reads: bool,
    pub(crate) writes: bool,
    /// It is a step by itself.
    pub(crate) atomic: bool,
    /// It is one look of a loop that waits: the word is shared on purpose.
    pub(crate) waits: bool,
}

#[derive(Clone, Copy)]
struct Word {
    visits: u32,
    count: u32,
    /// The bytes of it that atomic operations access.
    atomic: u8,
}

#[derive(Clone, Copy)]
struct Visit {
    code: usize,
    /// Where the access began, which may be before the word.
    address: usize,
    at: Epoch,
    forced: Epoch,
    locks: SetId,
    bytes: u8,
    writes: bool,
    atomic: bool,
    /// The word was known to be accessed with atomic operations, so that the visit handed over by itself.
    synchronised: bool,
    next: u32,
}

/// What settles the order in which two accesses meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Settled {
    /// Nothing.
    Not,
    /// A hand-over that happened in this run.
    ByHandOver,
    /// The program, in every run.
    Always,
}

/// What comes before what in a run.
pub(crate) struct Orders<'a> {
    /// By all that hands over.
    pub(crate) seen: &'a mut Order,
    /// By what every run has.
    pub(crate) forced: &'a mut Order,
}

/// A moment in both orders, and the locks that are held.
#[derive(Clone, Copy, Debug)]
struct Moment {
    seen: Epoch,
    forced: Epoch,
    locks: SetId,
}

impl Orders<'_> {
    fn now(&mut self, thread: ThreadId) -> Moment {
        Moment { seen: self.seen.now(thread), forced: self.forced.now(thread), locks: self.seen.held(thread) }
    }

    /// What settles that a moment of another thread came before what `thread` does now.
    fn settle(&self, before: (Epoch, Epoch, SetId), now: &Moment, thread: ThreadId) -> Settled {
        let (seen, forced, locks) = before;
        if self.seen.protect(locks, now.locks) {
            Settled::Always
        } else if !self.seen.is_before(seen, thread) {
            Settled::Not
        } else if !self.forced.is_before(forced, thread) {
            Settled::ByHandOver
        } else {
            Settled::Always
        }
    }
}

/// What is known of a word after an access.
#[derive(Default)]
struct Noted {
    /// The word is accessed with atomic operations.
    synchronises: bool,
    /// Stores of other threads that the access may have read, and that were made before that was known.
    stored: Vec<Epoch>,
    /// There was no room for the word.
    missed: bool,
}

/// The bytes of a word that an access touches.
fn bytes_of(index: usize, address: usize, length: usize) -> u8 {
    let (start, end) = (index << GRAIN, (index + 1) << GRAIN);
    let first = address.max(start) - start;
    let last = (address + length.max(1)).min(end) - start;
    (u16::MAX << first & !(u16::MAX << last)) as u8
}

/// When a block was freed, and under which locks; the code, if it is to be told of.
#[derive(Clone, Copy, Debug)]
struct Free {
    at: Epoch,
    forced: Epoch,
    locks: SetId,
    code: Option<usize>,
}

/// What threads did in a run.
#[derive(Default)]
pub(crate) struct Suspects {
    words: ByAddress<usize, Word>,
    visits: Vec<Visit>,
    freed: Freed<Free>,
    /// Visits that were forgotten for want of room, to spread what is.
    forgotten: u32,
}

impl Suspects {
    /// Forgets all: a new run begins.
    pub(crate) fn clear(&mut self) {
        self.words.clear();
        self.visits.clear();
        self.freed.clear();
    }

    /// A thread frees a block, or a part of one that is no longer in use; `learned` is told of code that conflicts with that, and
    /// of the code that frees, if that is given.
    pub(crate) fn free(
        &mut self,
        mut orders: Orders<'_>,
        thread: ThreadId,
        (start, bytes): (usize, usize),
        code: Option<usize>,
        mut learned: impl FnMut(Settled, usize, ThreadId, usize),
    ) {
        let now = orders.now(thread);
        let mut convicted = Settled::Always;
        for index in words_of((start, bytes), GRAIN, self.words.len(), self.words.keys().copied()) {
            let Some(word) = self.words.get(&index) else { continue };
            let freed = bytes_of(index, start, bytes);
            let mut at = word.visits;
            while let Some(visit) = self.visits.get(at as usize) {
                if visit.at.thread != now.seen.thread && visit.bytes & freed != 0 {
                    let settled = orders.settle((visit.at, visit.forced, visit.locks), &now, thread);
                    convicted = convicted.min(settled);
                    if settled != Settled::Always && !visit.atomic {
                        learned(settled, visit.code, ThreadId(visit.at.thread), visit.address);
                    }
                }
                at = visit.next;
            }
        }
        if let Some(code) = code.filter(|_| convicted != Settled::Always) {
            learned(convicted, code, thread, start);
        }
        let Moment { seen, forced, locks } = now;
        self.freed.add(start, bytes, Free { at: seen, forced, locks, code });
    }

    /// This memory is given out again.
    pub(crate) fn allocated(&mut self, start: usize, bytes: usize) {
        self.freed.forget(start, bytes);
    }

    /// There is something new in this memory: nobody has touched it.
    pub(crate) fn forget(&mut self, start: usize, bytes: usize) {
        let words = start >> GRAIN..=(start + bytes.max(1) - 1) >> GRAIN;
        if words.end() - words.start() < self.words.len() {
            words.for_each(|index| {
                self.words.remove(&index);
            });
        } else {
            self.words.retain(|index, _| !words.contains(index));
        }
    }

    /// Takes in an access; `learned` is told of code that conflicts, who executed it, and where. Says whether all of it was
    /// taken in.
    pub(crate) fn note(
        &mut self,
        mut orders: Orders<'_>,
        touch: Touch,
        mut learned: impl FnMut(Settled, usize, ThreadId, usize),
    ) -> bool {
        let now = orders.now(touch.thread);
        let last = (touch.address + touch.bytes.max(1) - 1) >> GRAIN;
        let mut synchronises = touch.atomic;
        let mut whole = last - (touch.address >> GRAIN) < MOST_WORDS;
        for index in (touch.address >> GRAIN..=last).take(MOST_WORDS) {
            let noted = self.note_word(&orders, index, now, &touch, &mut learned);
            synchronises |= noted.synchronises;
            whole &= !noted.missed;
            noted.stored.into_iter().for_each(|moment| orders.seen.catch_up(touch.thread, moment));
        }
        let order = orders.seen;
        if touch.writes && !synchronises {
            // It may turn out to be an atomic store, by which what came before is published and what follows is not.
            order.pass(touch.thread);
        }
        if synchronises {
            if touch.reads {
                order.take_over(touch.thread, touch.address);
            }
            if touch.writes {
                order.hand_over(touch.thread, touch.address);
            }
        }
        whole
    }

    fn note_word(
        &mut self,
        orders: &Orders<'_>,
        index: usize,
        moment: Moment,
        touch: &Touch,
        learned: &mut impl FnMut(Settled, usize, ThreadId, usize),
    ) -> Noted {
        let Moment { seen: now, forced, locks } = moment;
        if self.words.len() >= MOST_MEMORY && !self.words.contains_key(&index) {
            return Noted { missed: true, ..Noted::default() };
        }
        let word = self.words.entry(index).or_insert(Word { visits: NONE, count: 0, atomic: 0 });
        let bytes = bytes_of(index, touch.address, touch.bytes);
        if touch.atomic || touch.waits {
            word.atomic |= bytes;
        }
        let mut noted = Noted { synchronises: word.atomic & bytes != 0, ..Noted::default() };
        let mut same = NONE;
        let mut convicted = Settled::Always;
        let mut at = word.visits;
        while let Some(visit) = self.visits.get(at as usize).copied() {
            if visit.at.thread == now.thread {
                let same_access = visit.bytes == bytes && visit.writes == touch.writes;
                if visit.code == touch.code && visit.locks == locks && same_access {
                    if visit.at == now {
                        return noted;
                    }
                    same = at;
                }
            } else if visit.bytes & bytes != 0
                && (visit.writes || touch.writes)
                && !(visit.atomic && touch.atomic)
                && let settled = orders.settle((visit.at, visit.forced, visit.locks), &moment, touch.thread)
                && settled != Settled::Always
            {
                convicted = convicted.min(settled);
                if !visit.atomic {
                    learned(settled, visit.code, ThreadId(visit.at.thread), visit.address);
                }
                if settled == Settled::Not
                    && noted.synchronises
                    && touch.reads
                    && visit.writes
                    && !visit.synchronised
                {
                    noted.stored.push(visit.at);
                }
            }
            at = visit.next;
        }
        if let Some(free) = self.freed.at(touch.address)
            && free.at.thread != now.thread
            && let settled = orders.settle((free.at, free.forced, free.locks), &moment, touch.thread)
            && settled != Settled::Always
        {
            convicted = convicted.min(settled);
            if let Some(code) = free.code {
                learned(settled, code, ThreadId(free.at.thread), touch.address);
            }
        }
        if convicted != Settled::Always && !touch.atomic {
            learned(convicted, touch.code, touch.thread, touch.address);
        }
        let mut visit = Visit {
            code: touch.code,
            address: touch.address,
            at: now,
            forced,
            locks,
            bytes,
            writes: touch.writes,
            atomic: touch.atomic,
            synchronised: noted.synchronises,
            next: word.visits,
        };
        if same == NONE && word.count >= MOST_VISITS {
            // The place of one of those remembered, a different one each time.
            self.forgotten = self.forgotten.wrapping_add(1);
            same = word.visits;
            for _ in 0..self.forgotten % MOST_VISITS {
                same =
                    Some(self.visits[same as usize].next).filter(|&next| next != NONE).unwrap_or(word.visits);
            }
        }
        match self.visits.get_mut(same as usize) {
            // Whoever has not seen the later moment has not seen the earlier one.
            Some(before) => {
                visit.next = before.next;
                *before = visit;
            }
            None => {
                word.visits = self.visits.len() as u32;
                word.count += 1;
                self.visits.push(visit);
            }
        }
        noted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::{Locks, Way};

    const ONE: ThreadId = ThreadId(1);
    const TWO: ThreadId = ThreadId(2);

    struct Scene {
        order: Order,
        forced: Order,
        suspects: Suspects,
        learned: Vec<usize>,
        handed: Vec<usize>,
    }

    impl Scene {
        fn new() -> Scene {
            let spawned = || {
                let mut order = Order::new(Locks::Protect);
                order.spawned(ThreadId(0), ONE);
                order.spawned(ThreadId(0), TWO);
                order
            };
            Scene {
                order: spawned(),
                forced: spawned(),
                suspects: Suspects::default(),
                learned: Vec::new(),
                handed: Vec::new(),
            }
        }

        fn free(&mut self, thread: ThreadId, block: (usize, usize), code: usize) {
            let Scene { order, forced, suspects, learned, handed } = self;
            suspects.free(
                Orders { seen: order, forced },
                thread,
                block,
                Some(code),
                |settled, code, _, _| {
                    if settled == Settled::Not { &mut *learned } else { &mut *handed }.push(code);
                },
            );
            self.sort();
        }

        fn sort(&mut self) {
            for list in [&mut self.learned, &mut self.handed] {
                list.sort_unstable();
                list.dedup();
            }
        }

        fn touch(&mut self, thread: ThreadId, code: usize, address: usize, writes: bool, atomic: bool) {
            let touch = Touch {
                thread,
                code,
                address,
                bytes: 4,
                reads: atomic || !writes,
                writes,
                atomic,
                waits: false,
            };
            let Scene { order, forced, suspects, learned, handed } = self;
            suspects.note(Orders { seen: order, forced }, touch, |settled, code, _, _| {
                if settled == Settled::Not { &mut *learned } else { &mut *handed }.push(code);
            });
            self.sort();
        }

        fn reads(&mut self, thread: ThreadId, code: usize, address: usize) {
            self.touch(thread, code, address, false, false);
        }

        fn writes(&mut self, thread: ThreadId, code: usize, address: usize) {
            self.touch(thread, code, address, true, false);
        }
    }

    #[test]
    fn both_sides_of_a_conflict_are_learned_once() {
        let mut scene = Scene::new();
        scene.writes(ONE, 10, 64);
        scene.reads(TWO, 20, 64);
        scene.reads(TWO, 20, 64);
        assert_eq!(scene.learned, [10, 20]);
        scene.reads(TWO, 21, 128);
        scene.reads(ONE, 11, 128);
        assert_eq!(scene.learned, [10, 20], "what is only read does not conflict");
    }

    #[test]
    fn one_lock_protects_and_two_do_not() {
        let mut scene = Scene::new();
        scene.order.locked(ONE, 8, Way::Exclusive);
        scene.writes(ONE, 10, 64);
        scene.order.unlocked(ONE, 8);
        scene.order.locked(TWO, 8, Way::Exclusive);
        scene.writes(TWO, 20, 64);
        scene.order.unlocked(TWO, 8);
        assert!(scene.learned.is_empty());
        scene.order.locked(TWO, 16, Way::Exclusive);
        scene.reads(TWO, 21, 64);
        assert_eq!(scene.learned, [10, 21], "the wrong lock");
    }

    #[test]
    fn what_one_schedule_orders_by_a_lock_is_learned_all_the_same() {
        let mut scene = Scene::new();
        scene.writes(ONE, 10, 64);
        scene.order.locked(ONE, 8, Way::Exclusive);
        scene.order.unlocked(ONE, 8);
        scene.order.locked(TWO, 8, Way::Exclusive);
        scene.order.unlocked(TWO, 8);
        scene.writes(TWO, 20, 64);
        assert_eq!(scene.learned, [10, 20]);
    }

    #[test]
    fn what_threads_hand_over_needs_no_step() {
        let mut scene = Scene::new();
        scene.writes(ONE, 10, 64);
        scene.order.joined(ThreadId(0), ONE);
        scene.forced.joined(ThreadId(0), ONE);
        scene.reads(ThreadId(0), 1, 64);
        assert!(scene.learned.is_empty() && scene.handed.is_empty(), "the join is in every run");
        scene.writes(TWO, 20, 72);
        scene.order.hand_over(TWO, 8);
        scene.order.take_over(ThreadId(0), 8);
        scene.reads(ThreadId(0), 2, 72);
        assert!(scene.learned.is_empty());
        assert_eq!(scene.handed, [2, 20], "the hand-over may not be");
    }

    #[test]
    fn an_object_that_an_exchange_hands_over_is_suspected_and_one_under_a_lock_is_not() {
        let mut scene = Scene::new();
        for thread in [ONE, TWO] {
            scene.touch(thread, 1, 64, true, true);
            scene.writes(thread, 10 + thread.index(), 128);
            scene.order.locked(thread, 8, Way::Exclusive);
            scene.writes(thread, 20 + thread.index(), 256);
            scene.order.unlocked(thread, 8);
            scene.reads(thread, 30 + thread.index(), 512);
            scene.touch(thread, 2, 64, true, true);
        }
        assert!(scene.learned.is_empty());
        assert_eq!(scene.handed, [11, 12]);
    }

    #[test]
    fn a_plain_load_of_an_atomic_is_a_step_and_hands_over() {
        let mut scene = Scene::new();
        // A flag that is set by an exchange, after the data.
        scene.writes(ONE, 10, 128);
        scene.touch(ONE, 11, 64, true, true);
        scene.reads(TWO, 20, 64);
        scene.reads(TWO, 21, 128);
        assert_eq!(scene.learned, [20], "the load may come before the exchange; the data is handed over");
    }

    #[test]
    fn a_store_before_the_word_is_known_to_be_atomic_hands_over_as_well() {
        let mut scene = Scene::new();
        // Data, a flag that is set by a plain store, and what the flag does not publish; then somebody waits for the flag.
        for word in 0..100 {
            scene.writes(ONE, 10, 4096 + 8 * word);
        }
        scene.writes(ONE, 11, 64);
        scene.writes(ONE, 12, 8192);
        scene.touch(TWO, 20, 64, false, true);
        for word in 0..100 {
            scene.reads(TWO, 21, 4096 + 8 * word);
        }
        assert_eq!(scene.learned, [11], "the store of the flag is worth a step, the data is not");
        scene.reads(TWO, 22, 8192);
        assert_eq!(scene.learned, [11, 12, 22], "what was written behind the flag is not handed over");
    }

    #[test]
    fn memory_that_is_allocated_again_has_no_past() {
        let mut scene = Scene::new();
        scene.writes(ONE, 10, 64);
        scene.suspects.forget(64, 8);
        scene.writes(TWO, 20, 64);
        assert!(scene.learned.is_empty());
        scene.writes(ONE, 11, 64);
        assert_eq!(scene.learned, [11, 20]);
        scene.writes(ONE, 12, 128);
        scene.suspects.forget(0, 1 << 20);
        scene.writes(TWO, 21, 128);
        assert_eq!(scene.learned, [11, 20], "more than there are words");
    }

    #[test]
    fn a_free_meets_every_access_to_the_block() {
        let mut scene = Scene::new();
        scene.reads(ONE, 10, 64);
        scene.reads(ONE, 11, 64 + 9000);
        scene.reads(ONE, 12, 64 + 16_384);
        scene.free(TWO, (64, 16_384), 25);
        assert_eq!(scene.learned, [10, 11, 25], "and nothing behind the block");
        scene.learned.clear();
        scene.reads(ONE, 13, 64 + 800);
        assert_eq!(scene.learned, [13, 25], "what nobody had touched");
        scene.reads(TWO, 20, 64);
        assert_eq!(scene.learned, [13, 25], "who frees conflicts with nothing of its own");
        scene.suspects.allocated(64, 16_384);
        scene.reads(ONE, 14, 64 + 1600);
        assert_eq!(scene.learned, [13, 25], "it is another block");
    }

    #[test]
    fn a_free_by_the_last_owner_meets_nobody() {
        let mut scene = Scene::new();
        scene.reads(ONE, 10, 72);
        // Both count down; who comes last frees.
        scene.touch(ONE, 11, 64, true, true);
        scene.touch(TWO, 21, 64, true, true);
        scene.free(TWO, (64, 64), 22);
        assert!(scene.learned.is_empty());
        assert_eq!(scene.handed, [10, 22], "unless the count is wrong");
        // Under the lock under which it is read.
        scene.order.locked(ONE, 8, Way::Exclusive);
        scene.reads(ONE, 12, 160);
        scene.order.unlocked(ONE, 8);
        scene.order.locked(TWO, 8, Way::Exclusive);
        scene.free(TWO, (160, 32), 23);
        assert!(scene.learned.is_empty());
        assert_eq!(scene.handed, [10, 22]);
    }

    #[test]
    fn neighbours_in_a_word_do_not_meet() {
        let mut scene = Scene::new();
        scene.writes(ONE, 10, 64);
        scene.writes(TWO, 20, 68);
        assert!(scene.learned.is_empty());
        scene.reads(TWO, 21, 66);
        assert_eq!(scene.learned, [10, 21], "two bytes of each");
        assert_eq!((bytes_of(8, 64, 8), bytes_of(8, 60, 6), bytes_of(8, 71, 9)), (0xff, 0b11, 0x80));
    }

    #[test]
    fn a_crowded_word_stays_small_and_still_convicts() {
        let mut scene = Scene::new();
        for code in 0..1000 {
            scene.reads(ONE, code, 64);
        }
        assert!(scene.suspects.visits.len() <= MOST_VISITS as usize);
        scene.writes(TWO, 5000, 64);
        assert!(scene.learned.contains(&5000) && scene.learned.len() > 40);
    }
}
