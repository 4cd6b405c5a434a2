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

use waylay_control_protocol::AccessReport;
use waylay_control_protocol::instrumentation::RACING_MEMORY;
use waylay_schedule::ThreadId;

use crate::blocks::{Block, Blocks};
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
    blocks: Blocks,
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
            blocks: Blocks::default(),
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
        self.blocks.add(block);
    }

    /// Memory has no past and belongs to no block.
    pub(crate) fn given(&mut self, start: usize, bytes: usize) {
        self.forget(start, bytes);
        self.freed.forget(start, bytes);
        self.order.forget(start, bytes);
        self.blocks.forget(start, bytes);
    }

    /// A block has another length now.
    pub(crate) fn resized(&mut self, start: usize, bytes: usize) {
        self.blocks.resize(start, bytes);
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
        self.blocks.around(address)
    }

    /// The locks of a set.
    pub(crate) fn locks(&self, set: SetId) -> impl Iterator<Item = (usize, Way)> + '_ {
        self.order.locks_of(set).iter().copied()
    }
}

#[cfg(test)]
mod tests;
