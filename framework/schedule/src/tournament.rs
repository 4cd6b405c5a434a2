//! The enabled thread with the greatest key: a tournament tree.
//!
//! Threads stand in blocks of eight, whose best is found by looking at all of them (cheaper than branching), and the
//! best of the blocks meet in a tree. Reading the winner costs nothing, changing one key costs one block and as much of
//! the way up as changes. Keys are positive; 0 stands for a thread that does not take part. Among equal keys the lower
//! thread number wins.

use std::hint::select_unpredictable;

use crate::event::ThreadId;

const BLOCK: usize = 8;

/// Keys by thread, and the thread whose key is greatest.
#[derive(Clone, Debug)]
pub struct Tournament {
    /// Key of each thread, padded with 0 to whole blocks.
    keys: Vec<u64>,
    /// Winners of the matches: node 1 is the final, node i plays the winners of 2i and 2i+1, and node `blocks + b` is
    /// the best of block b.
    winners: Vec<u32>,
    blocks: usize,
    entrants: usize,
}

impl Default for Tournament {
    fn default() -> Self {
        let mut tournament = Tournament { keys: Vec::new(), winners: Vec::new(), blocks: 0, entrants: 0 };
        tournament.grow(1);
        tournament
    }
}

impl Tournament {
    /// Takes every thread out and keeps the memory.
    pub fn clear(&mut self) {
        self.keys.fill(0);
        self.entrants = 0;
        self.replay();
    }

    /// Makes room for a thread, so that nothing allocates afterwards.
    pub fn reserve(&mut self, thread: ThreadId) {
        if thread.index() >= self.keys.len() {
            self.grow((thread.index() / BLOCK + 1).next_power_of_two());
        }
    }

    fn grow(&mut self, blocks: usize) {
        self.blocks = blocks;
        self.keys.resize(blocks * BLOCK, 0);
        self.winners.resize(2 * blocks, 0);
        self.replay();
    }

    fn replay(&mut self) {
        for block in 0..self.blocks {
            self.winners[self.blocks + block] = self.best_of(block);
        }
        for node in (1..self.blocks).rev() {
            self.winners[node] = self.play(node);
        }
    }

    /// In three rounds of independent comparisons, which the processor does side by side.
    #[inline]
    fn best_of(&self, block: usize) -> u32 {
        let first = block * BLOCK;
        let Some(&[a, b, c, d, e, f, g, h]) = self.keys[first..].first_chunk::<BLOCK>() else { return 0 };
        let best =
            |(left, i): (u64, u32), (right, j): (u64, u32)| if right > left { (right, j) } else { (left, i) };
        let upper = best(best((a, 0), (b, 1)), best((c, 2), (d, 3)));
        let lower = best(best((e, 4), (f, 5)), best((g, 6), (h, 7)));
        first as u32 + best(upper, lower).1
    }

    #[inline]
    fn play(&self, node: usize) -> u32 {
        let (left, right) = (self.winners[2 * node], self.winners[2 * node + 1]);
        select_unpredictable(self.keys[left as usize] >= self.keys[right as usize], left, right)
    }

    /// Gives the thread this key; 0 takes it out.
    #[inline]
    pub fn set(&mut self, thread: ThreadId, key: u64) {
        if thread.index() >= self.keys.len() {
            self.reserve(thread);
        }
        // Most programs have few threads, and for them this is all.
        if self.blocks == 1 {
            let old = std::mem::replace(&mut self.keys[thread.index()], key);
            self.entrants = self.entrants + usize::from(old == 0) - usize::from(key == 0);
            self.winners[1] = self.best_of(0);
        } else {
            self.set_in_tree(thread, key);
        }
    }

    fn set_in_tree(&mut self, thread: ThreadId, key: u64) {
        let old = std::mem::replace(&mut self.keys[thread.index()], key);
        if old == key {
            return;
        }
        self.entrants = self.entrants + usize::from(old == 0) - usize::from(key == 0);
        let block = thread.index() / BLOCK;
        let mut node = self.blocks + block;
        let mut winner = self.best_of(block);
        // Above a match that others win as before, nothing can change.
        while winner != self.winners[node] || winner == thread.0 {
            self.winners[node] = winner;
            node /= 2;
            if node == 0 {
                break;
            }
            winner = self.play(node);
        }
    }

    /// The key of the thread; 0 when it does not take part.
    #[inline]
    pub fn key(&self, thread: ThreadId) -> u64 {
        self.keys.get(thread.index()).copied().unwrap_or(0)
    }

    /// How many threads take part.
    #[inline]
    pub fn len(&self) -> usize {
        self.entrants
    }

    /// Whether no thread takes part.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entrants == 0
    }

    /// The thread with the greatest key.
    #[inline]
    pub fn winner(&self) -> Option<ThreadId> {
        if self.entrants == 0 { None } else { Some(ThreadId(self.winners[1])) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_a_scan(changes in prop::collection::vec((0u32..70, 0u64..5), 1..200)) {
            let mut tournament = Tournament::default();
            let mut keys = vec![0u64; 70];
            for (thread, key) in changes {
                tournament.set(ThreadId(thread), key);
                keys[thread as usize] = key;
                let best = (0..70u32).rev().max_by_key(|&t| keys[t as usize]).filter(|&t| keys[t as usize] > 0);
                prop_assert_eq!(tournament.winner(), best.map(ThreadId));
                prop_assert_eq!(tournament.len(), keys.iter().filter(|&&key| key > 0).count());
            }
        }
    }
}
