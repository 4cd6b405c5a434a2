//! Which accesses are worth a step: those that touch memory which another thread touches too, one of them writing.
//!
//! Most accesses of a program concern memory of one thread, and a step there multiplies the schedules without changing
//! what they can show: k, the number of steps, is what every guarantee divides by. So it is noted which code touches
//! which memory, in words of eight bytes, while more than one thread lives; code that touches a word in conflict is
//! worth a step from then on. Memory that is freed and used again by another thread counts as shared: that costs steps
//! and hides nothing. A free is a write to all of a block.

use waylay_schedule::ThreadId;

use crate::freed::{Freed, words_of};
use waylay_scheduler::ByAddress;

/// log2 of the bytes that are told apart.
const GRAIN: u32 = 3;
/// Words of one access that are looked at: of a longer copy, the beginning.
const MOST_WORDS: usize = 1 << 13;
const NONE: u32 = u32::MAX;

/// What threads did so far.
#[derive(Default)]
pub(crate) struct Sharing {
    words: ByAddress<usize, Word>,
    /// Code that touched a word that is not in conflict so far: a list per word.
    visits: Vec<Visit>,
    /// Blocks that were freed, by whom, and the code if it is to be told of.
    freed: Freed<(ThreadId, Option<usize>)>,
}

struct Word {
    thread: ThreadId,
    /// Another thread touched it too.
    shared: bool,
    written: bool,
    visits: u32,
}

struct Visit {
    code: usize,
    thread: ThreadId,
    address: usize,
    next: u32,
}

impl Word {
    /// Tells of the code that touched it so far.
    fn convict(&mut self, visits: &[Visit], learned: &mut impl FnMut(usize, ThreadId, usize)) {
        let mut at = core::mem::replace(&mut self.visits, NONE);
        while let Some(visit) = visits.get(at as usize) {
            learned(visit.code, visit.thread, visit.address);
            at = visit.next;
        }
    }
}

impl Sharing {
    /// Forgets all: a new run begins.
    pub(crate) fn clear(&mut self) {
        self.words.clear();
        self.visits.clear();
        self.freed.clear();
    }

    /// A thread frees a block; `learned` is told of code that touched it for another, and of the code that frees, if that is
    /// given.
    pub(crate) fn free(
        &mut self,
        thread: ThreadId,
        (start, bytes): (usize, usize),
        code: Option<usize>,
        mut learned: impl FnMut(usize, ThreadId, usize),
    ) {
        let mut convicted = false;
        for index in words_of((start, bytes), GRAIN, self.words.len(), self.words.keys().copied()) {
            let Some(word) = self.words.get_mut(&index) else { continue };
            word.shared |= word.thread != thread;
            word.written = true;
            convicted |= word.shared;
            if word.shared {
                word.convict(&self.visits, &mut learned);
            }
        }
        if let Some(code) = code.filter(|_| convicted) {
            learned(code, thread, start);
        }
        self.freed.add(start, bytes, (thread, code));
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

    /// Takes in an access; `learned` is told of code that is in conflict, who executed it, and where. Says whether all of it was
    /// taken in.
    pub(crate) fn note(
        &mut self,
        thread: ThreadId,
        code: usize,
        (address, bytes): (usize, usize),
        writes: bool,
        mut learned: impl FnMut(usize, ThreadId, usize),
    ) -> bool {
        let last = (address + bytes.max(1) - 1) >> GRAIN;
        for index in (address >> GRAIN..=last).take(MOST_WORDS) {
            let word = self.words.entry(index).or_insert(Word {
                thread,
                shared: false,
                written: false,
                visits: NONE,
            });
            let freed_by = self.freed.at(address).filter(|&(by, _)| by != thread);
            if let Some((by, Some(code))) = freed_by {
                learned(code, by, address);
            }
            word.shared |= word.thread != thread || freed_by.is_some();
            word.written |= writes || freed_by.is_some();
            if !(word.shared && word.written) {
                let mut at = word.visits;
                while let Some(visit) = self.visits.get(at as usize) {
                    if visit.code == code && visit.thread == thread {
                        break;
                    }
                    at = visit.next;
                }
                if at == NONE {
                    self.visits.push(Visit { code, thread, address, next: word.visits });
                    word.visits = self.visits.len() as u32 - 1;
                }
                continue;
            }
            word.convict(&self.visits, &mut learned);
            learned(code, thread, address);
        }
        last - (address >> GRAIN) < MOST_WORDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learn(accesses: &[(u32, usize, usize, usize, bool)]) -> Vec<usize> {
        let mut sharing = Sharing::default();
        let mut learned = Vec::new();
        for &(thread, code, address, bytes, writes) in accesses {
            sharing.note(ThreadId(thread), code, (address, bytes), writes, |code, _, _| learned.push(code));
        }
        learned.sort_unstable();
        learned.dedup();
        learned
    }

    #[test]
    fn memory_that_is_allocated_again_has_no_past() {
        let mut sharing = Sharing::default();
        sharing.note(ThreadId(1), 10, (64, 4), true, |_, _, _| panic!("alone"));
        sharing.forget(64, 4);
        sharing.note(ThreadId(2), 20, (64, 4), true, |_, _, _| panic!("another object"));
    }

    #[test]
    fn both_sides_of_a_conflict_are_learned() {
        assert_eq!(learn(&[(1, 10, 64, 4, true), (2, 20, 64, 4, false)]), [10, 20]);
        assert_eq!(
            learn(&[(1, 10, 64, 4, false), (1, 11, 64, 4, false), (2, 20, 64, 4, true)]),
            [10, 11, 20]
        );
        assert_eq!(
            learn(&[(1, 10, 64, 4, true), (2, 20, 64, 4, false), (3, 30, 64, 1, false)]),
            [10, 20, 30]
        );
    }

    #[test]
    fn what_is_only_read_or_private_is_not() {
        assert!(learn(&[(1, 10, 64, 4, false), (2, 20, 64, 4, false)]).is_empty());
        assert!(learn(&[(1, 10, 64, 4, true), (1, 11, 64, 4, true), (2, 20, 72, 4, true)]).is_empty());
    }

    #[test]
    fn a_free_is_a_write_to_all_of_the_block() {
        let mut sharing = Sharing::default();
        let mut learned = Vec::new();
        sharing.note(ThreadId(1), 10, (6400, 4), false, |_, _, _| panic!("alone"));
        sharing.free(ThreadId(2), (64, 512), Some(20), |_, _, _| panic!("untouched"));
        sharing.free(ThreadId(2), (64, 8192), None, |code, _, _| learned.push(code));
        sharing.note(ThreadId(1), 11, (128, 4), false, |code, _, _| learned.push(code));
        assert_eq!(learned, [10, 11]);
        sharing.allocated(64, 8192);
        sharing.note(ThreadId(1), 12, (256, 4), false, |_, _, _| panic!("another block"));
    }

    #[test]
    fn a_long_access_meets_short_ones() {
        assert_eq!(learn(&[(1, 10, 0, 100, true), (2, 20, 96, 4, false)]), [10, 20]);
    }
}
