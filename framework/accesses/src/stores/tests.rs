//! Views against the rules.

use super::model::Instruction::*;
use super::model::{BYTES, Bytes, Instruction, by_rules, by_views};
use super::*;

const X: usize = 0;
const Y: usize = 8;
const Z: usize = 16;

fn st(address: usize, value: u64) -> Instruction {
    Store(address, 4, value)
}

fn ld(address: usize) -> Instruction {
    Load(address, 4)
}

fn xchg(address: usize, value: u64) -> Instruction {
    Exchange(address, 4, value)
}

/// Name, threads, and how many final states there are under sequential consistency and under TSO.
fn litmus() -> Vec<(&'static str, Vec<Vec<Instruction>>, usize, usize)> {
    vec![
        ("SB", vec![vec![st(X, 1), ld(Y)], vec![st(Y, 1), ld(X)]], 3, 4),
        ("SB+mfences", vec![vec![st(X, 1), Fence, ld(Y)], vec![st(Y, 1), Fence, ld(X)]], 3, 3),
        ("SB+one mfence", vec![vec![st(X, 1), Fence, ld(Y)], vec![st(Y, 1), ld(X)]], 3, 4),
        ("SB+xchgs", vec![vec![xchg(X, 1), ld(Y)], vec![xchg(Y, 1), ld(X)]], 3, 3),
        ("SB+rfi", vec![vec![st(X, 1), ld(X), ld(Y)], vec![st(Y, 1), ld(Y), ld(X)]], 3, 4),
        ("MP", vec![vec![st(X, 1), st(Y, 1)], vec![ld(Y), ld(X)]], 3, 3),
        ("LB", vec![vec![ld(X), st(Y, 1)], vec![ld(Y), st(X, 1)]], 3, 3),
        ("S", vec![vec![st(X, 2), st(Y, 1)], vec![ld(Y), st(X, 1)]], 3, 3),
        ("R", vec![vec![st(X, 1), st(Y, 1)], vec![st(Y, 2), ld(X)]], 3, 4),
        ("2+2W", vec![vec![st(X, 1), st(Y, 2)], vec![st(Y, 1), st(X, 2)]], 3, 3),
        ("WRC", vec![vec![st(X, 1)], vec![ld(X), st(Y, 1)], vec![ld(Y), ld(X)]], 7, 7),
        ("RWC", vec![vec![st(X, 1)], vec![ld(X), ld(Y)], vec![st(Y, 1), ld(X)]], 7, 8),
        ("ISA2", vec![vec![st(X, 1), st(Y, 1)], vec![ld(Y), st(Z, 1)], vec![ld(Z), ld(X)]], 7, 7),
        ("CoRR", vec![vec![st(X, 1)], vec![ld(X), ld(X)]], 3, 3),
        ("CoWW", vec![vec![st(X, 1), st(X, 2)], vec![ld(X), ld(X)]], 6, 6),
        ("n5", vec![vec![st(X, 1), ld(X)], vec![st(X, 2), ld(X)]], 4, 4),
        ("n6", vec![vec![st(X, 1), ld(X), ld(Y)], vec![st(Y, 2), st(X, 2)]], 4, 5),
        ("3.SB", vec![vec![st(X, 1), ld(Y)], vec![st(Y, 1), ld(Z)], vec![st(Z, 1), ld(X)]], 7, 8),
        ("Z6.3", vec![vec![st(X, 1), st(Y, 1)], vec![st(Y, 2), st(Z, 1)], vec![ld(Z), ld(X)]], 7, 7),
    ]
}

#[test]
fn litmus_tests_give_what_the_rules_give_and_no_more() {
    for (name, program, consistent, buffered) in litmus() {
        assert_eq!(by_rules(&program, false).len(), consistent, "{name} without buffers");
        let rules = by_rules(&program, true);
        assert_eq!(rules.len(), buffered, "{name} by the rules");
        assert_eq!(by_views(&program), rules, "{name} by views");
    }
}

#[test]
fn four_threads_see_one_order_of_memory() {
    let program = [vec![st(X, 1)], vec![st(Y, 1)], vec![ld(X), ld(Y)], vec![ld(Y), ld(X)]];
    assert_eq!((by_rules(&program, false).len(), by_views(&program).len()), (15, 15), "IRIW");
}

/// A small generator: the programs are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn instruction(&mut self) -> Instruction {
        let bytes = [1, 2, 4, 8][self.below(4) as usize];
        // Anywhere in the first words: aligned or not, across words, over parts of each other.
        let address = self.below(12) as usize;
        match self.below(8) {
            0..=3 => Store(address, bytes, self.below(u64::MAX)),
            4 | 5 => Load(address, bytes),
            6 => Fence,
            _ => Exchange(address, bytes, self.below(u64::MAX)),
        }
    }
}

#[test]
fn random_programs_with_overlaps_give_what_the_rules_give() {
    let mut numbers = Numbers(7);
    for round in 0..400 {
        let program: Vec<Vec<Instruction>> =
            (0..2).map(|_| (0..1 + numbers.below(3)).map(|_| numbers.instruction()).collect()).collect();
        assert_eq!(by_views(&program), by_rules(&program, true), "{round}: {program:?}");
    }
}

#[test]
fn stores_without_a_step_overtake_nothing() {
    let mut numbers = Numbers(11);
    for round in 0..400 {
        let program: Vec<Vec<Instruction>> = (0..2)
            .map(|_| {
                let instructions = (0..1 + numbers.below(3)).map(|_| match numbers.instruction() {
                    Store(address, bytes, value) if numbers.below(2) == 0 => Quiet(address, bytes, value),
                    other => other,
                });
                instructions.collect()
            })
            .collect();
        // They become visible sooner than they may, but never too soon.
        assert!(by_views(&program).is_subset(&by_rules(&program, true)), "{round}: {program:?}");
    }
}

#[test]
fn the_own_view_is_what_the_thread_stored_at_every_size() {
    for bytes in 1..=BYTES {
        let mut memory = Bytes([1; BYTES]);
        let mut buffer = StoreBuffer::default();
        assert!(buffer.note(&mut memory, 0, bytes, 0, true));
        memory.write(0, &[2; BYTES][..bytes]);
        buffer.hide(&mut memory);
        assert_eq!(memory.0, [1; BYTES]);
        memory.write(0, &[3]);
        buffer.show(&mut memory);
        assert_eq!(memory.0[..bytes], [2; BYTES][..bytes]);
        buffer.hide(&mut memory);
        assert_eq!(memory.0[0], 3, "what lies below is noted anew");
        buffer.flush(&mut memory);
        assert!(buffer.is_empty() && memory.0[..bytes] == [2; BYTES][..bytes]);
    }
    let mut memory = Bytes([0; BYTES]);
    assert!(!StoreBuffer::default().note(&mut memory, 0, WIDEST + 1, 0, true), "too long to wait");
    assert!(!StoreBuffer::default().note(&mut memory, 0, 4, 0, false), "nothing to wait for");
}

#[test]
fn a_store_that_was_not_seen_is_not_lost() {
    let mut memory = Bytes([0; BYTES]);
    let mut buffer = StoreBuffer::default();
    buffer.note(&mut memory, 0, 4, 0, true);
    memory.write(0, &[1; 4]);
    buffer.note(&mut memory, 8, 4, 0, true);
    memory.write(8, &[1; 4]);
    // By code that nobody looks at.
    memory.write(2, &[9; 4]);
    buffer.hide(&mut memory);
    assert_eq!(memory.0[..6], [0, 0, 0, 0, 9, 9]);
    buffer.show(&mut memory);
    assert_eq!(memory.0[..6], [1, 1, 9, 9, 9, 9]);
}

#[test]
fn memory_that_is_given_back_has_no_store_waiting() {
    let mut memory = Bytes([0; BYTES]);
    let mut buffer = StoreBuffer::default();
    for (place, address) in [0, 8, 16].into_iter().enumerate() {
        buffer.note(&mut memory, address, 4, 0, true);
        memory.write(address, &[place as u8 + 1; 4]);
    }
    buffer.hide(&mut memory);
    buffer.flush_through(&mut memory, 10, 1);
    assert_eq!((memory.0[0], memory.0[8], memory.0[16]), (1, 2, 0), "in order, and no further");
    assert_eq!(buffer.oldest().map(|store| store.address), Some(16));
    buffer.flush_through(&mut memory, 4, 4);
    assert!(!buffer.is_empty());
}

#[test]
fn a_buffer_has_an_end() {
    let mut memory = Bytes([0; BYTES]);
    let mut buffer = StoreBuffer::default();
    let mut noted = 0;
    while !buffer.is_full() {
        buffer.note(&mut memory, noted % 20, 1, 0, true);
        noted += 1;
    }
    assert_eq!(noted, DEEPEST);
}
