//! Drawing a thread with probability in proportion to its weight: a Fenwick tree.

use crate::event::ThreadId;

/// Weights by thread.
#[derive(Clone, Debug, Default)]
pub struct Weights {
    weights: Vec<u64>,
    /// Node i (from 1) holds the sum of the `i & -i` weights that end with the i-th.
    sums: Vec<u64>,
    total: u64,
}

impl Weights {
    /// Forgets all threads and keeps the memory.
    pub fn clear(&mut self) {
        self.weights.clear();
        self.sums.clear();
        self.total = 0;
    }

    /// Makes room for a thread; its weight is 0.
    pub fn reserve(&mut self, thread: ThreadId) {
        if thread.index() >= self.weights.len() {
            self.weights.resize((thread.index() + 1).next_power_of_two(), 0);
            self.sums.clear();
            self.sums.resize(self.weights.len() + 1, 0);
            for node in 1..self.sums.len() {
                self.sums[node] += self.weights[node - 1];
                let parent = node + (node & node.wrapping_neg());
                if parent < self.sums.len() {
                    self.sums[parent] += self.sums[node];
                }
            }
        }
    }

    /// The weight of a thread.
    pub fn get(&self, thread: ThreadId) -> u64 {
        self.weights.get(thread.index()).copied().unwrap_or(0)
    }

    /// Sets the weight of a thread.
    pub fn set(&mut self, thread: ThreadId, weight: u64) {
        self.reserve(thread);
        let old = std::mem::replace(&mut self.weights[thread.index()], weight);
        self.total = self.total - old + weight;
        let mut node = thread.index() + 1;
        while node < self.sums.len() {
            self.sums[node] = self.sums[node] - old + weight;
            node += node & node.wrapping_neg();
        }
    }

    /// The sum of all weights.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The thread in whose share the point falls: the first whose weights up to and with it exceed `point`.
    pub fn at(&self, point: u64) -> Option<ThreadId> {
        if point >= self.total {
            return None;
        }
        let (mut place, mut left) = (0, point);
        let mut stride = self.weights.len();
        while stride > 0 {
            if place + stride < self.sums.len() && self.sums[place + stride] <= left {
                place += stride;
                left -= self.sums[place];
            }
            stride /= 2;
        }
        Some(ThreadId(place as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_point_falls_in_its_share(changes in prop::collection::vec((0u32..20, 0u64..6), 1..60)) {
            let mut weights = Weights::default();
            let mut plain = [0u64; 20];
            for (thread, weight) in changes {
                weights.set(ThreadId(thread), weight);
                plain[thread as usize] = weight;
                let shares: Vec<u32> = (0..20u32)
                    .flat_map(|thread| std::iter::repeat_n(thread, plain[thread as usize] as usize))
                    .collect();
                prop_assert_eq!(weights.total(), shares.len() as u64);
                for (point, &thread) in shares.iter().enumerate() {
                    prop_assert_eq!(weights.at(point as u64), Some(ThreadId(thread)));
                }
                prop_assert_eq!(weights.at(shares.len() as u64), None);
            }
        }
    }
}
