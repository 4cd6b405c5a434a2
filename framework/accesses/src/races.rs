//! Accesses that nothing orders: a race detector over one run, by vector clocks. Pure.
//!
//! It is remembered who touched a word and when. An access that overlaps one of another thread, one of the two writing,
//! is a race if the other does not come before it (Flanagan and Freund, "FastTrack", 2009; here with a short list per word
//! instead of one reader, so that the other place can be told).
//!
//! Atomic operations never race with each other. Those that a compiler reports order what is around them as the memory orders
//! say that they name. In patched code nothing says that, and each orders as much as any could. Machine code does not always show that an operation is atomic: loads, and stores that are not sequentially consistent, are
//! plain moves. So in patched code a move to a word that atomic instructions access counts as atomic too, and so does one
//! at a place that is known to be. Where one side is certainly atomic and the other a move that only counts as such, it
//! is asked once whether that place is atomic, because a plain access races with atomic ones like with any other.
//!
//! A free is a plain write to all of a block. Memory that is allocated again has no past.

use std::collections::BTreeMap;

use waylay_control_protocol::AccessReport;
use waylay_control_protocol::instrumentation::RACING_MEMORY;
use waylay_schedule::ThreadId;

use crate::freed::{Freed, words_of};
use crate::order::{Epoch, Locks, Order, Promise, SetId, Way};
use waylay_scheduler::ByAddress;

/// log2 of the bytes that are remembered together, each with a bit of its own.
const GRAIN: u32 = 3;
/// Words of one access that are looked at: of a longer copy, the beginning.
const MOST_WORDS: usize = 1 << 13;
/// Accesses that are remembered of a word.
const MOST_VISITS: usize = 24;
/// Words that are remembered; a run that touches more is not looked at any further, because an order may be missed.
const MOST_MEMORY: usize = (RACING_MEMORY >> GRAIN) as usize;
/// Heap blocks that are remembered.
const MOST_BLOCKS: usize = 1 << 18;
const NONE: u32 = u32::MAX;

/// An access that is about to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deed {
    pub(crate) thread: ThreadId,
    pub(crate) code: usize,
    pub(crate) address: usize,
    pub(crate) bytes: usize,
    pub(crate) reads: bool,
    pub(crate) writes: bool,
    pub(crate) atomic: bool,
    /// It is atomic by its own instruction, or because a compiler says so.
    pub(crate) certain: bool,
    /// A compiler reported it; otherwise it is a patched instruction.
    pub(crate) compiled: bool,
    /// It gives the memory back.
    pub(crate) frees: bool,
    /// What it promises, where it is atomic and a compiler says so.
    pub(crate) promise: Promise,
}

impl Deed {
    /// Memory is given back: a write to all of it.
    pub(crate) fn free(thread: ThreadId, code: usize, (address, bytes): (usize, usize)) -> Deed {
        let (reads, writes, atomic, certain, compiled) = (false, true, false, false, true);
        Deed {
            thread,
            code,
            address,
            bytes,
            reads,
            writes,
            atomic,
            certain,
            compiled,
            frees: true,
            promise: Promise::ALL,
        }
    }

    /// Whether no compiler makes an atomic operation of this form.
    fn is_plain(&self) -> bool {
        !self.atomic && (self.compiled || self.bytes > 8 || !self.address.is_multiple_of(self.bytes.max(1)))
    }

    fn flags(&self) -> u64 {
        let flag = |holds: bool, flag: u64| if holds { flag } else { 0 };
        flag(self.writes, AccessReport::WRITES)
            | flag(self.compiled, AccessReport::COMPILED)
            | flag(self.is_plain(), AccessReport::PLAIN)
            | flag(self.reads && self.writes, AccessReport::UPDATES)
            | flag(self.frees, AccessReport::FREES)
            | flag(self.certain, AccessReport::ATOMIC)
    }
}

/// An access as it is remembered, and told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) thread: u32,
    pub(crate) code: usize,
    pub(crate) address: usize,
    pub(crate) bytes: usize,
    pub(crate) flags: u64,
    pub(crate) serial: u64,
    pub(crate) locks: SetId,
}

/// Two accesses that nothing orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Race {
    /// A byte that both touch.
    pub(crate) address: usize,
    pub(crate) first: Seen,
    pub(crate) second: Seen,
}

/// A heap block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) start: usize,
    pub(crate) bytes: usize,
    pub(crate) thread: u32,
    pub(crate) code: usize,
}

struct Word {
    visits: u32,
    /// The bytes of it that atomic operations access.
    atomic: u8,
    /// Patched code accesses it by them, too: it is not known what all of them promise.
    patched: bool,
}

#[derive(Clone, Copy)]
struct Visit {
    seen: Seen,
    at: Epoch,
    bytes: u8,
    atomic: bool,
    /// Not because of what others do to the word.
    atomic_itself: bool,
    next: u32,
}

impl Visit {
    fn writes(&self) -> bool {
        self.seen.flags & AccessReport::WRITES != 0
    }

    fn is_plain(&self) -> bool {
        self.seen.flags & AccessReport::PLAIN != 0
    }

    fn is_compiled(&self) -> bool {
        self.seen.flags & AccessReport::COMPILED != 0
    }

    fn is_certainly_atomic(&self) -> bool {
        self.seen.flags & AccessReport::ATOMIC != 0
    }
}

/// What an access is to one word.
struct Noted {
    /// It counts as an atomic one.
    atomic: bool,
    /// Of all operations on the word it is known what they promise.
    promises_known: bool,
    /// One that it races with.
    race: Option<Seen>,
    /// Stores that were not known to be atomic when they were made, and that it may have read.
    stored: Vec<Epoch>,
}

/// What threads did in a run.
pub(crate) struct Races {
    pub(crate) order: Order,
    words: ByAddress<usize, Word>,
    visits: Vec<Visit>,
    free: u32,
    blocks: BTreeMap<usize, Block>,
    freed: Freed<(Seen, Epoch)>,
    /// Code whose plain accesses are atomic.
    pub(crate) deliberate: ByAddress<usize, ()>,
    /// Pairs of code that were asked about and are known.
    forgiven: ByAddress<usize, Vec<usize>>,
    serial: u64,
    /// More was touched than can be remembered.
    over: bool,
    /// What threads read last, where that was an atomic load that a compiler reported.
    loaded: ByAddress<usize, (usize, usize)>,
}

impl Default for Races {
    fn default() -> Races {
        Races {
            order: Order::new(Locks::Order),
            words: ByAddress::default(),
            visits: Vec::new(),
            free: NONE,
            blocks: BTreeMap::new(),
            freed: Freed::default(),
            deliberate: ByAddress::default(),
            forgiven: ByAddress::default(),
            serial: 0,
            over: false,
            loaded: ByAddress::default(),
        }
    }
}

/// The bytes of a word that an access touches.
fn bytes_of(index: usize, address: usize, length: usize) -> u8 {
    let (start, end) = (index << GRAIN, (index + 1) << GRAIN);
    let first = address.max(start) - start;
    let last = (address + length.max(1)).min(end) - start;
    (u16::MAX << first & !(u16::MAX << last)) as u8
}

impl Races {
    /// The number of the last access.
    pub(crate) fn serial(&self) -> u64 {
        self.serial
    }

    /// The access that was noted last, as it would be told.
    pub(crate) fn seen(&self, deed: &Deed) -> Seen {
        Seen {
            thread: deed.thread.0,
            code: deed.code,
            address: deed.address,
            bytes: deed.bytes,
            flags: deed.flags(),
            serial: self.serial,
            locks: self.order.held(deed.thread),
        }
    }

    /// Takes in an access that is made right now. Returns the first race with one before, unless `is_known` says that the
    /// two places are known.
    pub(crate) fn note(
        &mut self,
        mut deed: Deed,
        mut is_known: impl FnMut(usize, usize) -> bool,
    ) -> Option<Race> {
        self.serial += 1;
        if self.is_echo(&deed) {
            return None;
        }
        deed.atomic |= !deed.compiled && self.deliberate.contains_key(&deed.code);
        let now = self.order.now(deed.thread);
        let seen = self.seen(&deed);
        let last = (deed.address + deed.bytes.max(1) - 1) >> GRAIN;
        let mut race = self.freed.at(deed.address).and_then(|(first, at)| {
            let ordered = at.thread == now.thread || self.order.is_before(at, deed.thread);
            (!ordered && !self.over && !self.is_forgiven(first.code, seen.code, &mut is_known))
                .then_some(Race { address: seen.address, first, second: seen })
        });
        for index in (deed.address >> GRAIN..=last).take(MOST_WORDS) {
            let Noted { atomic, promises_known, race: other, stored } =
                self.note_word(index, &deed, seen, now);
            stored.into_iter().for_each(|moment| self.order.catch_up(deed.thread, moment));
            if atomic {
                self.settle(&deed, index, promises_known);
            }
            let Some(first) = other.filter(|_| race.is_none() && !self.over) else { continue };
            if !self.is_forgiven(first.code, seen.code, &mut is_known) {
                race = Some(Race { address: first.address.max(seen.address), first, second: seen });
            }
        }
        if deed.writes && !deed.atomic && !deed.is_plain() {
            // It may turn out to be an atomic store, by which what came before is published and what follows is not.
            self.order.pass(deed.thread);
        }
        race
    }

    /// Whether it is what clang leaves of an atomic load behind the call that reports it: a move whose result nobody uses.
    fn is_echo(&mut self, deed: &Deed) -> bool {
        let thread = deed.thread.index();
        let only_reads = deed.reads && !deed.writes;
        let last = self.loaded.remove(&thread);
        if deed.compiled && deed.atomic && only_reads {
            self.loaded.insert(thread, (deed.address, deed.bytes));
        }
        !deed.compiled && only_reads && last == Some((deed.address, deed.bytes))
    }

    /// An atomic operation takes over and hands over what it promises to, at a word.
    fn settle(&mut self, deed: &Deed, index: usize, promises_known: bool) {
        let Deed { thread, address, promise, .. } = *deed;
        // What patched code has to do with the word stays with the word. What a compiler reports is kept for that, too, because
        // patched code may come by later.
        if deed.reads && !promises_known {
            self.order.take_over(thread, index << GRAIN);
        }
        if deed.compiled && index == address >> GRAIN {
            if deed.reads {
                self.order.loads(thread, address, promise);
            }
            if deed.writes {
                self.order.stores(thread, address, promise, deed.reads);
            }
        }
        if deed.writes {
            self.order.hand_over(thread, index << GRAIN);
        }
    }

    /// Takes in that memory is given back, as [`Races::note`] takes in an access.
    pub(crate) fn free(
        &mut self,
        deed: Deed,
        mut is_known: impl FnMut(usize, usize) -> bool,
    ) -> Option<Race> {
        self.serial += 1;
        let now = self.order.now(deed.thread);
        let seen = self.seen(&deed);
        let block = (deed.address, deed.bytes);
        let mut race: Option<Race> = None;
        for index in words_of(block, GRAIN, self.words.len(), self.words.keys().copied()) {
            let Some(word) = self.words.get(&index) else { continue };
            let bytes = bytes_of(index, deed.address, deed.bytes);
            let mut at = word.visits;
            while let Some(&visit) = self.visits.get(at as usize) {
                at = visit.next;
                let ordered = visit.at.thread == now.thread || self.order.is_before(visit.at, deed.thread);
                let newest = race.is_none_or(|race| race.first.serial < visit.seen.serial);
                if ordered || visit.bytes & bytes == 0 || !newest || self.over {
                    continue;
                }
                if !self.is_forgiven(visit.seen.code, seen.code, &mut is_known) {
                    let address = visit.seen.address.max(deed.address);
                    race = Some(Race { address, first: visit.seen, second: seen });
                }
            }
        }
        self.freed.add(deed.address, deed.bytes, (seen, now));
        race
    }

    /// Whether more memory was touched than is remembered: nothing is told from there on, because an order may be missed.
    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    fn is_forgiven(
        &mut self,
        one: usize,
        other: usize,
        is_known: &mut impl FnMut(usize, usize) -> bool,
    ) -> bool {
        let (one, other) = (one.min(other), one.max(other));
        if self.forgiven.get(&one).is_some_and(|others| others.contains(&other)) {
            return true;
        }
        let known = is_known(one, other);
        if known {
            self.forgiven.entry(one).or_default().push(other);
        }
        known
    }

    fn note_word(&mut self, index: usize, deed: &Deed, seen: Seen, now: Epoch) -> Noted {
        if self.words.len() >= MOST_MEMORY && !self.words.contains_key(&index) {
            self.over = true;
            return Noted { atomic: deed.atomic, promises_known: false, race: None, stored: Vec::new() };
        }
        let word = self.words.entry(index).or_insert(Word { visits: NONE, atomic: 0, patched: false });
        let bytes = bytes_of(index, deed.address, deed.bytes);
        if deed.atomic {
            word.atomic |= bytes;
        }
        let plain = deed.is_plain();
        let atomic = deed.atomic || !plain && word.atomic & bytes != 0;
        word.patched |= atomic && !deed.compiled;
        let promises_known = !word.patched;
        let mut race: Option<Seen> = None;
        let mut stored: Vec<Epoch> = Vec::new();
        let (mut at, mut before, mut count) = (word.visits, NONE, 0);
        while let Some(&visit) = self.visits.get(at as usize) {
            let mine = visit.at.thread == now.thread;
            let same = mine && visit.at == now && visit.bytes == bytes && visit.atomic == atomic;
            if same && visit.seen.code == deed.code && visit.writes() == deed.writes {
                return Noted { atomic, promises_known, race, stored };
            }
            let ordered = mine || self.order.is_before(visit.at, deed.thread);
            // A move to a word that turned out to be atomic later was atomic as well.
            let was_atomic = visit.atomic || !visit.is_plain() && word.atomic & visit.bytes != 0;
            let meets = !ordered && visit.bytes & bytes != 0;
            if meets && atomic && deed.reads && was_atomic && !visit.atomic && visit.writes() {
                stored.push(visit.at);
            }
            if meets && (visit.writes() || deed.writes) {
                // A wide load may read what lies beside the variable that is meant.
                let races = match (was_atomic, atomic) {
                    // A move that counts as atomic because of others is asked about.
                    (true, true) => {
                        visit.is_certainly_atomic() && !deed.atomic || deed.certain && !visit.atomic_itself
                    }
                    (false, false) => true,
                    (true, false) => plain && (deed.writes || deed.compiled),
                    (false, true) => visit.is_plain() && (visit.writes() || visit.is_compiled()),
                };
                if races && race.is_none_or(|known| known.serial < visit.seen.serial) {
                    race = Some(visit.seen);
                }
            }
            // Whoever is in a race with what is left out is in one with the present access too.
            let covered = visit.bytes & !bytes == 0 && (deed.writes || !visit.writes());
            let next = visit.next;
            if ordered && covered && (visit.atomic || !atomic) || count >= MOST_VISITS {
                match self.visits.get_mut(before as usize) {
                    Some(previous) => previous.next = next,
                    None => word.visits = next,
                }
                self.visits[at as usize].next = self.free;
                self.free = at;
            } else {
                (before, count) = (at, count + 1);
            }
            at = next;
        }
        let visit = Visit { seen, at: now, bytes, atomic, atomic_itself: deed.atomic, next: word.visits };
        word.visits = match self.visits.get_mut(self.free as usize) {
            Some(place) => {
                let index = self.free;
                self.free = place.next;
                *place = visit;
                index
            }
            None => {
                self.visits.push(visit);
                self.visits.len() as u32 - 1
            }
        };
        Noted { atomic, promises_known, race, stored }
    }

    /// Memory is given to the program: what was there before has nothing to do with it.
    pub(crate) fn allocated(&mut self, block: Block) {
        self.given(block.start, block.bytes);
        if self.blocks.len() < MOST_BLOCKS {
            self.blocks.insert(block.start, block);
        }
    }

    /// Memory has no past and belongs to no block.
    pub(crate) fn given(&mut self, start: usize, bytes: usize) {
        self.forget(start, bytes);
        self.freed.forget(start, bytes);
        self.order.forget(start, bytes);
        let end = start.saturating_add(bytes.max(1));
        let inside: Vec<usize> = self.blocks.range(start..end).map(|(&start, _)| start).collect();
        for start in inside {
            self.blocks.remove(&start);
        }
    }

    /// A block has another length now.
    pub(crate) fn resized(&mut self, start: usize, bytes: usize) {
        if let Some(block) = self.blocks.get_mut(&start) {
            block.bytes = bytes;
        }
    }

    fn forget(&mut self, start: usize, bytes: usize) {
        let (first, last) = (start >> GRAIN, (start + bytes.max(1) - 1) >> GRAIN);
        if last - first < self.words.len() {
            for index in first..=last {
                if let Some(word) = self.words.remove(&index) {
                    self.release(word.visits);
                }
            }
            return;
        }
        let gone: Vec<usize> =
            self.words.keys().copied().filter(|index| (first..=last).contains(index)).collect();
        for index in gone {
            if let Some(word) = self.words.remove(&index) {
                self.release(word.visits);
            }
        }
    }

    fn release(&mut self, mut at: u32) {
        while let Some(visit) = self.visits.get_mut(at as usize) {
            let next = core::mem::replace(&mut visit.next, self.free);
            self.free = at;
            at = next;
        }
    }

    /// The heap block around an address, as far as it is known.
    pub(crate) fn block_of(&self, address: usize) -> Option<Block> {
        let (_, &block) = self.blocks.range(..=address).next_back()?;
        (address - block.start < block.bytes).then_some(block)
    }

    /// The locks of a set.
    pub(crate) fn locks(&self, set: SetId) -> impl Iterator<Item = (usize, Way)> + '_ {
        self.order.locks_of(set).iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAIN: ThreadId = ThreadId(0);
    const ONE: ThreadId = ThreadId(1);
    const TWO: ThreadId = ThreadId(2);

    /// A scene with two threads; accesses are of four bytes, by patched code unless said otherwise.
    fn scene() -> Races {
        let mut races = Races::default();
        races.order.spawned(MAIN, ONE);
        races.order.spawned(MAIN, TWO);
        races
    }

    fn deed(thread: ThreadId, code: usize, address: usize, reads: bool, writes: bool) -> Deed {
        Deed {
            thread,
            code,
            address,
            bytes: 4,
            reads,
            writes,
            atomic: false,
            certain: false,
            compiled: false,
            frees: false,
            promise: Promise::ALL,
        }
    }

    fn read(races: &mut Races, thread: ThreadId, code: usize, address: usize) -> Option<(usize, usize)> {
        codes(races.note(deed(thread, code, address, true, false), |_, _| false))
    }

    fn write(races: &mut Races, thread: ThreadId, code: usize, address: usize) -> Option<(usize, usize)> {
        codes(races.note(deed(thread, code, address, false, true), |_, _| false))
    }

    fn atomic(races: &mut Races, thread: ThreadId, code: usize, address: usize) -> Option<(usize, usize)> {
        let deed = Deed { atomic: true, certain: true, ..deed(thread, code, address, true, true) };
        codes(races.note(deed, |_, _| false))
    }

    fn codes(race: Option<Race>) -> Option<(usize, usize)> {
        race.map(|race| (race.first.code, race.second.code))
    }

    fn free(
        races: &mut Races,
        thread: ThreadId,
        code: usize,
        block: (usize, usize),
    ) -> Option<(usize, usize)> {
        codes(races.free(Deed::free(thread, code, block), |_, _| false))
    }

    #[test]
    fn who_frees_races_with_who_reads() {
        let mut races = scene();
        assert_eq!(read(&mut races, ONE, 10, 64 + 4000), None);
        assert_eq!(free(&mut races, TWO, 20, (64, 4000)), None, "in front of what is read");
        assert_eq!(free(&mut races, TWO, 21, (64, 8000)), Some((10, 21)));
        assert_eq!(read(&mut races, ONE, 11, 800), Some((21, 11)), "what nobody had touched");
        assert_eq!(atomic(&mut races, ONE, 12, 1600), Some((21, 12)), "nor does an atomic survive");
        assert_eq!(read(&mut races, TWO, 22, 800), None, "its own");
        races.allocated(Block { start: 64, bytes: 8000, thread: 1, code: 5 });
        assert_eq!(read(&mut races, ONE, 13, 808), None, "another block");
    }

    #[test]
    fn the_last_owner_frees_in_order() {
        let mut races = scene();
        read(&mut races, ONE, 10, 72);
        atomic(&mut races, ONE, 11, 64);
        atomic(&mut races, TWO, 21, 64);
        assert_eq!(free(&mut races, TWO, 22, (64, 32)), None, "a count of owners");
        races.order.locked(ONE, 8, Way::Exclusive);
        write(&mut races, ONE, 12, 160);
        races.order.unlocked(ONE, 8);
        races.order.locked(TWO, 8, Way::Exclusive);
        races.order.unlocked(TWO, 8);
        assert_eq!(free(&mut races, TWO, 23, (160, 32)), None, "a lock");
        write(&mut races, TWO, 24, 256);
        races.order.joined(MAIN, TWO);
        assert_eq!(free(&mut races, MAIN, 1, (256, 32)), None, "the end of a thread");
    }

    #[test]
    fn two_that_nothing_orders_race_and_two_readers_do_not() {
        let mut races = scene();
        assert_eq!(read(&mut races, ONE, 10, 64), None);
        assert_eq!(read(&mut races, TWO, 20, 64), None);
        assert_eq!(write(&mut races, TWO, 21, 68), None, "a neighbour in the word");
        assert_eq!(write(&mut races, TWO, 22, 64), Some((10, 22)));
        assert_eq!(write(&mut races, ONE, 11, 64), Some((22, 11)), "the latest of several");
    }

    #[test]
    fn locks_joins_and_hand_overs_order() {
        let mut races = scene();
        races.order.locked(ONE, 8, Way::Exclusive);
        assert_eq!(write(&mut races, ONE, 10, 64), None);
        races.order.unlocked(ONE, 8);
        races.order.locked(TWO, 8, Way::Exclusive);
        assert_eq!(write(&mut races, TWO, 20, 64), None);
        let set = races.order.held(TWO);
        assert_eq!(races.locks(set).collect::<Vec<_>>(), [(8, Way::Exclusive)]);
        races.order.unlocked(TWO, 8);
        races.order.joined(MAIN, TWO);
        assert_eq!(write(&mut races, MAIN, 1, 64), None);
        assert_eq!(write(&mut races, ONE, 11, 64), Some((1, 11)), "one was not joined");
    }

    #[test]
    fn two_readers_of_a_lock_do_not_order_each_other_but_a_writer() {
        let mut races = scene();
        races.order.locked(ONE, 8, Way::Shared);
        assert_eq!(write(&mut races, ONE, 10, 64), None);
        races.order.unlocked(ONE, 8);
        races.order.locked(TWO, 8, Way::Shared);
        assert_eq!(read(&mut races, TWO, 20, 64), Some((10, 20)), "both may hold it at once");
        races.order.unlocked(TWO, 8);
        races.order.locked(MAIN, 8, Way::Exclusive);
        assert_eq!(write(&mut races, MAIN, 1, 64), None);
    }

    #[test]
    fn atomics_order_and_moves_to_their_words_do_too() {
        let mut races = scene();
        races.deliberate.insert(20, ());
        assert_eq!(write(&mut races, ONE, 10, 128), None);
        assert_eq!(read(&mut races, TWO, 20, 64), None);
        assert_eq!(atomic(&mut races, ONE, 11, 64), None);
        assert_eq!(read(&mut races, TWO, 20, 64), None);
        assert_eq!(read(&mut races, TWO, 21, 128), None, "published");
        assert_eq!(write(&mut races, ONE, 12, 128), Some((21, 12)), "not published");
    }

    #[test]
    fn a_move_that_meets_an_atomic_is_asked_about() {
        let mut races = scene();
        assert_eq!(read(&mut races, TWO, 20, 64), None);
        assert_eq!(atomic(&mut races, ONE, 11, 64), Some((20, 11)));
        assert_eq!(write(&mut races, TWO, 21, 64), Some((11, 21)), "from either side");
        assert_eq!(atomic(&mut races, ONE, 12, 64), Some((21, 12)));
        let runtime = Deed { certain: false, atomic: true, ..deed(ONE, 13, 72, true, true) };
        assert_eq!(races.note(runtime, |_, _| false), None);
        assert_eq!(write(&mut races, TWO, 22, 72), None, "what a runtime does decides nothing");
    }

    #[test]
    fn a_store_that_turns_out_to_be_atomic_has_published() {
        let mut races = scene();
        assert_eq!(write(&mut races, ONE, 10, 128), None);
        assert_eq!(write(&mut races, ONE, 11, 64), None);
        assert_eq!(write(&mut races, ONE, 12, 136), None);
        let waits = Deed { atomic: true, ..deed(TWO, 20, 64, true, false) };
        assert_eq!(races.note(waits, |_, _| false), None);
        assert_eq!(read(&mut races, TWO, 21, 128), None, "before the store");
        assert_eq!(read(&mut races, TWO, 22, 136), Some((12, 22)), "after it");
    }

    #[test]
    fn what_a_compiler_calls_plain_races_with_atomics() {
        let mut races = scene();
        let compiled =
            |thread, code, writes: bool| Deed { compiled: true, ..deed(thread, code, 64, !writes, writes) };
        assert_eq!(atomic(&mut races, ONE, 10, 64), None);
        assert_eq!(codes(races.note(compiled(TWO, 20, false), |_, _| false)), Some((10, 20)));
        assert_eq!(codes(races.note(compiled(TWO, 21, true), |_, _| false)), Some((10, 21)));
    }

    /// Publishes through a flag at 64 and reads what was published; patched or compiled on either side.
    fn published(stores: (bool, i32), loads: (bool, i32)) -> bool {
        let mut races = scene();
        let flag = |thread, code, reads: bool, (compiled, order)| Deed {
            atomic: true,
            certain: true,
            compiled,
            promise: if compiled { Promise::of_compiler(order) } else { Promise::ALL },
            ..deed(thread, code, 64, reads, !reads)
        };
        assert_eq!(write(&mut races, ONE, 10, 128), None);
        assert_eq!(races.note(flag(ONE, 11, false, stores), |_, _| false), None);
        assert_eq!(races.note(flag(TWO, 20, true, loads), |_, _| false), None);
        read(&mut races, TWO, 21, 128).is_none()
    }

    #[test]
    fn what_a_compiler_says_about_orders_counts_and_what_nobody_says_does_not() {
        let (relaxed, acquire, release) = (0, 2, 3);
        assert!(published((true, release), (true, acquire)));
        assert!(!published((true, relaxed), (true, acquire)) && !published((true, release), (true, relaxed)));
        assert!(
            published((true, relaxed), (false, 0)) && published((false, 0), (true, relaxed)),
            "patched code"
        );
    }

    #[test]
    fn a_flag_that_is_known_to_be_atomic_publishes() {
        let mut races = scene();
        for code in [11, 20] {
            races.deliberate.insert(code, ());
        }
        assert_eq!(write(&mut races, ONE, 10, 128), None);
        assert_eq!(write(&mut races, ONE, 11, 64), None);
        assert_eq!(read(&mut races, TWO, 20, 64), None);
        assert_eq!(read(&mut races, TWO, 21, 128), None);
    }

    #[test]
    fn what_is_known_is_passed_over() {
        let mut races = scene();
        let mut asked = 0;
        for (thread, code) in [(ONE, 10), (TWO, 20), (ONE, 10), (TWO, 20)] {
            let race = races.note(deed(thread, code, 64, false, true), |one, other| {
                asked += 1;
                (one, other) == (10, 20)
            });
            assert_eq!(race, None);
        }
        assert_eq!(asked, 1, "the answer is remembered");
        assert_eq!(write(&mut races, TWO, 21, 64), Some((10, 21)));
    }

    #[test]
    fn memory_that_is_allocated_again_has_no_past() {
        let mut races = scene();
        races.allocated(Block { start: 64, bytes: 32, thread: 1, code: 5 });
        assert_eq!(write(&mut races, ONE, 10, 72), None);
        races.allocated(Block { start: 56, bytes: 24, thread: 2, code: 6 });
        assert_eq!(write(&mut races, TWO, 20, 72), None);
        assert_eq!(races.block_of(79).map(|block| (block.start, block.code)), Some((56, 6)));
        assert_eq!(races.block_of(80), None);
        races.order.hand_over(TWO, 72);
        races.allocated(Block { start: 64, bytes: 32, thread: 1, code: 5 });
        races.order.take_over(ONE, 72);
        assert_eq!(write(&mut races, TWO, 20, 72), None);
        assert_eq!(
            write(&mut races, ONE, 11, 72),
            Some((20, 11)),
            "nothing was handed over through the new block"
        );
        let visits = races.visits.len();
        races.allocated(Block { start: 0, bytes: 1 << 40, thread: 0, code: 0 });
        assert_eq!(write(&mut races, ONE, 11, 72), None);
        assert_eq!(races.visits.len(), visits, "places are used again");
    }

    #[test]
    fn threads_may_get_the_stack_of_one_that_is_gone() {
        let mut races = scene();
        assert_eq!(write(&mut races, ONE, 10, 64), None);
        races.order.ended(ONE);
        races.order.spawned(TWO, ThreadId(3));
        assert_eq!(write(&mut races, ThreadId(3), 30, 64), None);
        assert_eq!(write(&mut races, TWO, 20, 64), Some((30, 20)), "and nobody else is ordered by that");
    }

    #[test]
    fn a_word_that_many_touch_stays_small() {
        let mut races = scene();
        for code in 0..1000 {
            races.order.hand_over(ONE, 8);
            assert_eq!(read(&mut races, ONE, code, 64), None);
        }
        assert!(races.visits.len() <= MOST_VISITS + 2);
        assert_eq!(write(&mut races, TWO, 5000, 64), Some((999, 5000)));
    }
}
